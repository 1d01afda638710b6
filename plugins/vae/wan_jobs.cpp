#include "plugins/vae/wan_jobs.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "plugins/blocks/wan_latents.h"

namespace heddle::vae {

Value with_video_fields(const Value& conditioning, const GivenFields& fields) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < conditioning.count(); ++i) {
    const Value from = conditioning.item(i);
    Record entry(from);
    for (const auto& [name, value] : fields.set) entry.set(name, value);
    for (const auto& [name, value] : fields.appended) {
      std::vector<Value> items;
      const Value list = entry.value().field(name);  // with those that were appended before
      for (std::uint32_t k = 0; k < list.count(); ++k) items.push_back(list.item(k));
      items.push_back(value);
      entry.set(name, list_of(items));
    }
    entries.push_back(entry.value());
  }
  return list_of(entries);
}

Value empty_video(Context& ctx, const Shape& shape) {
  const Tensor samples = ctx.make_host(shape, HEDDLE_F32);
  std::fill_n(samples.data<float>(), samples.count(), 0.0f);
  return Record().set("samples", value_of(samples)).value();
}

Tensor model_zeros(Context& ctx, const Autoencoder& autoencoder, const VideoGrid& grid,
                   std::int64_t latents) {
  const Tensor made =
      ctx.make_host({1, latents * grid.channels, grid.frames, grid.height, grid.width}, HEDDLE_F32);
  std::vector<double> means(std::size_t(grid.channels), autoencoder.shift);
  const blocks::LatentStatistics known = blocks::published_statistics(grid.channels);
  if (!known.means.empty()) std::ranges::copy(known.means, means.begin());
  float* to = made.data<float>();
  for (std::int64_t c = 0; c < latents * grid.channels; ++c)
    to = std::fill_n(to, grid.frames * grid.height * grid.width,
                     float(means[std::size_t(c % grid.channels)]));
  // What is uploaded may lie in host memory, whose readers wait for no op that writes to it.
  const Tensor all = ctx.make(made.shape(), HEDDLE_F32);
  ops::copy_into(ctx, ctx.upload(made.shape(), HEDDLE_F32, made.data<float>()), all);
  return all;
}

std::int64_t whole_frames(std::int64_t pictures, std::int64_t length) {
  return 1 + (latent_frames_of(std::min(pictures, length)) - 1) * kFramesOfCell;
}

Tensor encoded_begin(Context& ctx, const Value& autoencoder, const WanJob& job,
                     const Tensor& pictures, const char* name, std::int64_t length) {
  const std::int64_t given = std::min(pictures_shape(pictures.shape(), name)[0], length);
  FrameStrip strip(ctx, autoencoder, whole_frames(given, length), job.pixels);
  strip.put(pictures, name, 0, given, 0);
  return strip.encoded();
}

void tell_encoded_begin(Infer& question, const Value& autoencoder, const Shape& pictures,
                        const WanJob& job, std::int64_t length) {
  const std::int64_t frames = whole_frames(pictures[0], length);
  tell_pixels(question, pictures, job, frames);
  infer_encoded_video(question, autoencoder, job.grid, frames);
}

std::uint64_t strip_bytes(const heddle_tensor_info& pictures, const blocks::GridSize& pixels,
                          std::int64_t frames) {
  const Shape shape = blocks::shape_of(pictures);
  const std::int64_t copied = pictures.dtype == HEDDLE_F32 ? 0 : count_of(shape);
  return blocks::resampling_bytes({1, {shape[1], shape[2]}, shape[3]}, pixels) +
         sizeof(float) *
             std::uint64_t(checked_sum({copied, checked_product({frames * kColours + shape[3],
                                                                 pixels.height, pixels.width},
                                                                "the frames")},
                                       "the frames"));
}

void tell_pixels(Infer& question, const Shape& pictures, const WanJob& job, std::int64_t frames) {
  question.host_scratch(strip_bytes(tensor_info(HEDDLE_F32, pictures), job.pixels, frames));
}

}  // namespace heddle::vae
