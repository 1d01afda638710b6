#include "plugins/vae/video_frames.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "plugins/vae/video_chunks.h"
#include "plugins/vae/video_pieces.h"
#include "plugins/vae/whole_videos.h"

namespace heddle::vae {
namespace {

constexpr float kGreyFrame = 0.5f;
constexpr std::int64_t kUsualChannels = 16;

bool encodes_whole(const Value& vae) {
  return codes_whole_videos(vae.field("encoder"), vae.has("encoder_chunks"));
}

// Room for frames that the autoencoder can encode.
Tensor make_frames(Context& ctx, const Value& vae, std::int64_t frames,
                   const blocks::GridSize& size) {
  model_of(vae, "encoder");
  if (frames > 1 && !is_video(frames, vae) && !encodes_whole(vae))
    throw Error(HEDDLE_UNSUPPORTED,
                "vae: its encoder takes single pictures, and is to encode a video of " +
                    std::to_string(frames) +
                    " frames. Load the autoencoder of Wan, or ask for a length of 1.");
  return ctx.make_host({frames, size.height, size.width, kColours}, HEDDLE_F32);
}

}  // namespace

VideoGrid video_grid(const Autoencoder& autoencoder, std::int64_t width, std::int64_t height,
                     std::int64_t length) {
  const VideoGrid grid{autoencoder.channels > 0 ? autoencoder.channels : kUsualChannels,
                       latent_frames_of(length), autoencoder.cells(height),
                       autoencoder.cells(width)};
  if (grid.frames < 1 || grid.height < 1 || grid.width < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "width " + std::to_string(width) + ", height " + std::to_string(height) +
                    ", length " + std::to_string(length) + ": a latent cell has " +
                    std::to_string(autoencoder.downscale) +
                    " pixels a side. Give a larger video, of one frame at least.");
  return grid;
}

Shape pictures_shape(const Shape& shape, const char* name) {
  if (shape.size() != 4 || shape[3] < kColours || count_of(shape) == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string(name) + ": pictures are (batch, height, width, 3 or more), this has " +
                    std::to_string(shape.size()) + " axes and " + std::to_string(count_of(shape)) +
                    " numbers. Link an IMAGE.");
  return shape;
}

FrameStrip::FrameStrip(Context& ctx, const Value& vae, std::int64_t frames,
                       const blocks::GridSize& size, blocks::Resampling method)
    : ctx_(ctx),
      vae_(vae),
      size_(size),
      method_(method),
      pixels_(make_frames(ctx, vae, frames, size)) {
  fill(kGreyFrame);
}

void FrameStrip::fill(float number) { std::fill_n(pixels_.data<float>(), pixels_.count(), number); }

void FrameStrip::put(const Tensor& pictures, const char* name, std::int64_t first,
                     std::int64_t count, std::int64_t at) {
  const Shape shape = pictures_shape(pictures.shape(), name);
  const std::int64_t channels = shape[3], frame = size_.height * size_.width;
  count = std::min({count, shape[0] - first, pixels_.size(0) - at});
  HostMemory memory(ctx_);
  const HostFloats floats(ctx_, pictures);
  std::pmr::vector<float> resized(std::size_t(checked_product({frame, channels}, name)), &memory);
  const std::int64_t step = shape[1] * shape[2] * channels;
  for (std::int64_t i = 0; i < count; ++i) {
    if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    const auto whole =
        blocks::Source::of(floats.data() + (first + i) * step, {1, {shape[1], shape[2]}, channels});
    float* to = pixels_.data<float>() + (at + i) * frame * kColours;
    float* const made = channels == kColours ? to : resized.data();
    blocks::resample(is_cut_ ? blocks::centre_cropped(whole, size_) : whole, size_, method_, made,
                     memory);
    for (std::int64_t p = 0; made != to && p < frame; ++p)
      std::copy_n(made + p * channels, kColours, to + p * kColours);
  }
}

void FrameStrip::repeat(const Tensor& pictures, const char* name, std::int64_t at) {
  if (at >= pixels_.size(0)) return;
  put(pictures, name, 0, 1, at);
  const std::int64_t frame = size_.height * size_.width * kColours;
  const float* const first = pixels_.data<float>() + at * frame;
  for (std::int64_t i = at + 1; i < pixels_.size(0); ++i)
    std::copy_n(first, frame, pixels_.data<float>() + i * frame);
}

void FrameStrip::keep(const float* shares, bool what_is_left) {
  const std::int64_t pixels = pixels_.count() / kColours;
  float* at = pixels_.data<float>();
  for (std::int64_t i = 0; i < pixels; ++i) {
    const float share = shares == nullptr ? 1.0f : shares[i],
                kept = what_is_left ? 1.0f - share : share;
    for (std::int64_t c = 0; c < kColours; ++c, ++at) *at = (*at - kGreyFrame) * kept + kGreyFrame;
  }
}

void FrameStrip::shade(const float* shares, std::int64_t at) {
  const std::int64_t pixels = size_.height * size_.width;
  float* to = pixels_.data<float>() + at * pixels * kColours;
  for (std::int64_t i = 0; i < pixels; ++i)
    for (std::int64_t c = 0; c < kColours; ++c) *to++ *= shares[i];
}

Tensor FrameStrip::encoded() const {
  const Autoencoder autoencoder(vae_);
  const std::int64_t count = pixels_.size(0), frame = pixels_.count() / count;
  const auto uploaded = [&](std::int64_t begin, std::int64_t end) {
    Shape shape = pixels_.shape();
    shape[0] = end - begin;
    return covered_by_cells(
        ctx_, ctx_.upload(shape, HEDDLE_F32, pixels_.data<float>() + begin * frame), autoencoder);
  };
  if (encodes_whole(vae_)) {
    const Tensor mean = mean_of_pictures(ctx_, vae_, uploaded(0, count), autoencoder);
    return ops::cast(ctx_, mean, HEDDLE_F32);
  }
  if (count == 1) {
    const Tensor mean = mean_of(ctx_, model_of(vae_, "encoder"), uploaded(0, 1));
    const Tensor whole = mean.dtype() == HEDDLE_F32 ? mean : ops::cast(ctx_, mean, HEDDLE_F32);
    return ops::contiguous(ctx_, whole)
        .reshape({1, whole.size(1), 1, whole.size(2), whole.size(3)});
  }
  // Chunk by chunk, so that the device holds the pixels of one alone.
  const Shape shape = latent_frames_shape(pixels_.shape(), vae_, autoencoder);
  return coded_frames(ctx_, vae_, shape, {0, 1}, uploaded);
}

void infer_encoded_video(Infer& question, const Value& vae, const VideoGrid& grid,
                         std::int64_t frames) {
  const std::optional<Autoencoder> autoencoder = usable(vae);
  if (!autoencoder) return;
  if (is_video(frames, vae)) {
    Shape latent = grid.shape(1);
    latent[2] = latent_frames_of(frames);
    tell_encoded_frames(question, vae, latent, *autoencoder);
    return;
  }
  if (encodes_whole(vae)) {
    const std::int64_t side = autoencoder->downscale;
    tell_mean_of_pictures(question, vae,
                          {frames, grid.height * side, grid.width * side, autoencoder->colours},
                          *autoencoder);
    return;
  }
  const Value encoder = vae.field("encoder");
  if (frames != 1 || !encoder.is(HEDDLE_KIND_MODEL)) return;
  const std::int64_t factor = autoencoder->downscale;
  question.call(encoder, {{{{"image",
                             HEDDLE_F32,
                             {1, grid.height * factor, grid.width * factor, autoencoder->colours}}},
                           {}}});
}

}  // namespace heddle::vae
