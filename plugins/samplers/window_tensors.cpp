#include "window_tensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "conditioning.h"
#include "frame_noise.h"
#include "guide_inputs.h"
#include "music_input.h"
#include "sampler_loop.h"
#include "scail_input.h"
#include "sound_video_input.h"
#include "sources_input.h"

namespace heddle::samplers {
namespace {

// Places that follow each other, on both sides.
struct Run {
  std::int64_t from = 0, to = 0, count = 0;
};

std::vector<Run> runs_of(const std::vector<std::int64_t>& places) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!runs.empty() && runs.back().from + runs.back().count == places[i])
      ++runs.back().count;
    else
      runs.push_back({places[i], std::int64_t(i), 1});
  }
  return runs;
}

Tensor part(const Tensor& tensor, std::size_t axis, std::int64_t begin, std::int64_t count) {
  return tensor.slice(int(axis), begin, begin + count);
}

// The axis that is cut as the point is; none: a window sees all of it.
std::optional<std::size_t> axis_in_window(std::string_view name, const Shape& shape,
                                          const WindowRule& rule, std::int64_t full) {
  if (rule.dim == kFramesAxis && name == kGuideFrames)
    throw Error(HEDDLE_UNSUPPORTED,
                "the conditioning tells of guides (LTXVAddGuide), which context windows along the "
                "frames would cut. Use one of the two.");
  if (rule.dim == kFramesAxis && (name == "pose" || name == "face"))
    throw Error(HEDDLE_UNSUPPORTED,
                "the conditioning has poses or a face (WanAnimateToVideo, WanAnimate2ToVideo), "
                "which context windows along the frames would cut. Use one of the two.");
  const bool is_of_other_size = name == kSources || name == kHalfPoseInput ||
                                name == kPoseMasksInput || name == kReferenceMasksInput;
  if (rule.dim != 0 && is_of_other_size)
    throw Error(HEDDLE_UNSUPPORTED,
                "the conditioning has poses or masks (WanSCAILToVideo), or videos to look at "
                "(BerniniConditioning), which context windows do not cut. Use one of the two.");
  const bool is_of_sound_video =
      name == kHeardInput || name == kEarlierInput || name == kFollowedInput;
  if (rule.dim == kFramesAxis && is_of_sound_video)
    throw Error(HEDDLE_UNSUPPORTED,
                "the conditioning has a sound or frames before a video (WanSoundImageToVideo), "
                "which context windows along the frames would cut. Use one of the two.");
  if (rule.dim == kFramesAxis && (name == kMusicInput || name == kFramePlaces))
    throw Error(HEDDLE_UNSUPPORTED,
                "the conditioning has a music or frames that lie apart (WanDancerVideo), which "
                "context windows along the frames would cut. Use one of the two.");
  if (rule.dim != 0 && (name == kTokenRows || name == kTokenPlaces || name == kGuideWeights))
    throw Error(HEDDLE_UNSUPPORTED,
                "the conditioning tells of guides (LTXVAddGuide) of a strength, a mask or "
                "parameters of their own, which context windows along a side would cut. Use one of "
                "the two.");
  constexpr std::array<std::string_view, 22> kRows = {"context",
                                                      "y",
                                                      "concat",
                                                      "references",
                                                      "vision",
                                                      "vace",
                                                      "byt5",
                                                      "camera",
                                                      "reference",
                                                      "pose",
                                                      "face",
                                                      "pose_context",
                                                      kHeardInput,
                                                      kEarlierInput,
                                                      kFollowedInput,
                                                      "pose_vision",
                                                      kHalfPoseInput,
                                                      kPoseMasksInput,
                                                      kReferenceMasksInput,
                                                      kSources,
                                                      kMusicInput,
                                                      kKeptVision};
  if (rule.dim == kFramesAxis && name == kFrameNoise) return 0;
  const bool is_beside = name == "concat" || name == "vace" || name == "camera" || name == "pose" ||
                         name == kEarlierInput || name == kFollowedInput ||
                         (name == "reference" && rule.dim != kFramesAxis);
  if (rule.dim != 0) return is_beside ? std::optional(std::size_t(rule.dim)) : std::nullopt;
  const bool has_rows = std::ranges::find(kRows, name) != kRows.end() && shape.front() == full;
  return has_rows ? std::optional<std::size_t>(0) : std::nullopt;
}

// As with_places(), of numbers that lie in host memory and stay there.
Tensor host_numbers_at(Context& ctx, const Tensor& numbers,
                       const std::vector<std::int64_t>& places) {
  std::vector<float> all(std::size_t(numbers.count()));
  read_to<float>(ctx, numbers, all);
  const Tensor made = ctx.make_host({std::int64_t(places.size())}, HEDDLE_F32);
  std::ranges::transform(places, made.data<float>(),
                         [&](std::int64_t place) { return all[std::size_t(place)]; });
  return made;
}

}  // namespace

Tensor with_places(Context& ctx, const Tensor& tensor, std::size_t axis,
                   const std::vector<std::int64_t>& places) {
  Shape shape = tensor.shape();
  shape[axis] = std::int64_t(places.size());
  const Tensor made = ctx.make(shape, tensor.dtype());
  for (const Run& run : runs_of(places))
    ops::copy_into(ctx, part(tensor, axis, run.from, run.count),
                   part(made, axis, run.to, run.count));
  return made;
}

Value constants_in(Context& ctx, const Value& constants, const WindowRule& rule,
                   const ContextWindow& window, std::int64_t full) {
  Record made(constants);
  for (std::uint32_t i = 0; i < constants.count(); ++i) {
    const std::string name = constants.key(i);
    const Tensor tensor = constants.item(i).as<Tensor>();
    const std::optional<std::size_t> axis = axis_in_window(name, tensor.shape(), rule, full);
    if (!axis) continue;
    const std::vector<std::int64_t> places = window.seen(full, rule.cond_retained);
    made.set(name, value_of(name == kFrameNoise ? host_numbers_at(ctx, tensor, places)
                                                : with_places(ctx, tensor, *axis, places)));
  }
  return made.value();
}

Constants constants_in(Constants constants, const WindowRule& rule, const ContextWindow& window,
                       std::int64_t full) {
  for (Infer::Named& one : constants)
    if (const auto axis = axis_in_window(one.name, one.shape, rule, full))
      one.shape[*axis] = window.seen_count();
  return constants;
}

Tensor joined(Context& ctx, const std::vector<Tensor>& made, const ContextWindows& windows,
              std::size_t axis, const Shape& shape) {
  std::vector<ops::Term> terms;
  for (std::size_t k = 0; k < windows.size(); ++k) {
    const ContextWindow& window = windows[k];
    const auto count = std::int64_t(window.places.size());
    Shape along(shape.size(), 1);
    along[axis] = count;
    const std::vector<float> weights(window.weights.begin(), window.weights.end());
    const Tensor weighed = ops::mul(ctx, part(made[k], axis, window.anchor ? 1 : 0, count),
                                    ctx.upload(along, HEDDLE_F32, weights.data()));
    // A place that comes again in a window is added in a tensor of its own.
    std::vector<Tensor> layers;
    std::vector<std::int64_t> times(std::size_t(shape[axis]), 0);
    for (const Run& run : runs_of(window.places)) {
      const auto begin = times.begin() + run.from;
      const auto layer = std::size_t(*std::max_element(begin, begin + run.count));
      if (layer == layers.size()) layers.push_back(or_zeros(ctx, {}, shape));
      ops::copy_into(ctx, part(weighed, axis, run.to, run.count),
                     part(layers[layer], axis, run.from, run.count));
      std::fill(begin, begin + run.count, std::int64_t(layer) + 1);
    }
    for (const Tensor& layer : layers) terms.push_back({1.0, layer});
  }
  return sum_of(ctx, std::move(terms));
}

}  // namespace heddle::samplers
