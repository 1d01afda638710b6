#include "plugins/vae/bernini_node.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include <heddle/host_memory.hpp>

#include "plugins/blocks/dynamic_inputs.h"
#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

using Bernini = BerniniConditioning;

constexpr const char* kLookedAt = "context_latents";
constexpr std::int64_t kMultiple = 16;

// The size of a picture whose longer side is at most so many pixels.
blocks::GridSize size_within(const Shape& pictures, std::int64_t longest) {
  const std::int64_t height = pictures[1], width = pictures[2];
  const double scale = std::min(double(longest) / double(std::max(height, width)), 1.0);
  const auto side = [&](std::int64_t pixels) {
    return std::max(kMultiple,
                    blocks::rounded(double(pixels) * scale / double(kMultiple)) * kMultiple);
  };
  return {side(height), side(width)};
}

// Pictures `first` to `first + count` as a video of this size; those of another aspect are cut, or
// stretched.
struct LookedAt {
  const char* name;
  std::int64_t first, count;
  blocks::GridSize size;
  bool is_cut;
};
Value encoded_source(Context& ctx, const Tensor& pictures, const LookedAt& what) {
  FrameStrip strip(ctx, ctx[Bernini::vae], whole_frames(what.count, what.count), what.size,
                   blocks::Resampling::area);
  if (!what.is_cut) strip.stretch();
  strip.put(pictures, what.name, what.first, what.count, 0);
  return value_of(strip.encoded());
}

Tensor in_host_memory(Context& ctx, const Tensor& pictures) {
  const Tensor made = ctx.make_host(pictures.shape(), HEDDLE_F32);
  read_to<float>(ctx, pictures, std::span<float>(made.data<float>(), std::size_t(made.count())));
  return made;
}

}  // namespace

void BerniniConditioning::execute(Context& ctx) {
  const WanJob job = wan_job<Bernini>(ctx);
  std::vector<Value> sources;
  const auto frames_of = [&](const Tensor& video, const char* name) {
    return std::min(pictures_shape(video.shape(), name)[0], ctx[length]);
  };
  if (ctx.has(source_video)) {
    const Tensor video = ctx[source_video];
    const std::int64_t count = frames_of(video, "source_video");
    sources.push_back(encoded_source(ctx, video, {"source_video", 0, count, job.pixels, true}));
  }
  if (ctx.has(reference_video)) {
    const Tensor video = ctx[reference_video];
    const std::int64_t count = frames_of(video, "reference_video");
    sources.push_back(encoded_source(
        ctx, video,
        {"reference_video", 0, count, size_within(video.shape(), ctx[longest]), false}));
  }
  for (const blocks::GrownInput& input : blocks::grown_inputs(ctx, reference_images.port)) {
    const std::string name = std::string(reference_images.port.name) + "." + input.name;
    const Tensor given = input.value.as<Tensor>();
    const std::int64_t count = pictures_shape(given.shape(), name.c_str())[0];
    const Tensor pictures = in_host_memory(ctx, given);
    for (std::int64_t i = 0; i < count; ++i)
      sources.push_back(encoded_source(
          ctx, pictures, {name.c_str(), i, 1, size_within(given.shape(), ctx[longest]), false}));
  }
  GivenFields fields;
  if (!sources.empty()) fields.set.emplace_back(kLookedAt, list_of(sources));
  give_wan<Bernini>(ctx, job, fields);
}

void BerniniConditioning::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<Bernini>(question);
  const auto all = question[length], most = question[longest];
  if (!job || !all || !most) return;
  const Value autoencoder = *question[vae];
  const std::vector<blocks::ToldInput> shown = blocks::told_inputs(question, reference_images);
  if (!std::ranges::all_of(shown, [](const auto& told) { return told.tensor.has_value(); })) return;
  std::vector<heddle_tensor_info> sources;
  std::uint64_t bytes = 0;
  const auto tell = [&](const heddle_tensor_info& pictures, std::int64_t count,
                        const blocks::GridSize& size) {
    const std::int64_t frames = whole_frames(count, count);
    const VideoGrid grid = video_grid(*usable(autoencoder), size.width, size.height, frames);
    bytes = std::max(bytes, strip_bytes(pictures, size, frames));
    infer_encoded_video(question, autoencoder, grid, frames);
    sources.push_back(tensor_info(HEDDLE_F32, grid.shape(1)));
  };
  const auto is_known = [](const std::optional<heddle_tensor_info>& told) {
    return told && told->rank == 4 && count_of(blocks::shape_of(*told)) > 0;
  };
  if (const auto video = question.tensor(source_video); is_known(video))
    tell(*video, std::min(video->shape[0], *all), job->pixels);
  if (const auto video = question.tensor(reference_video); is_known(video))
    tell(*video, std::min(video->shape[0], *all), size_within(blocks::shape_of(*video), *most));
  for (const blocks::ToldInput& told : shown) {
    if (!is_known(told.tensor)) continue;
    const Shape shape = blocks::shape_of(*told.tensor);
    // Each is read from a copy in f32.
    const heddle_tensor_info copy = tensor_info(HEDDLE_F32, shape);
    for (std::int64_t i = 0; i < shape[0]; ++i) tell(copy, 1, size_within(shape, *most));
    bytes = std::max(bytes, sizeof(float) * std::uint64_t(count_of(shape)) +
                                strip_bytes(copy, size_within(shape, *most), 1));
  }
  if (bytes > 0) question.host_scratch(bytes);
  ToldFields fields;
  fields.sources = sources;
  tell_wan<Bernini>(question, *job, fields);
}

}  // namespace heddle::vae
