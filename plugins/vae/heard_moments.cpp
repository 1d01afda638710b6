#include "plugins/vae/heard_moments.h"

#include <algorithm>
#include <cmath>
#include <memory_resource>
#include <vector>

#include <heddle/host_memory.hpp>

#include "plugins/vae/sound_steps.h"

namespace heddle::vae {
namespace {

constexpr double kSteppedOfSecond = 30, kFramesOfSecond = 16;

// The moments of whole parts that a sound of so many steps takes.
std::int64_t moments_of(std::int64_t steps, std::int64_t part) {
  constexpr double kStepsOfFrame = kSteppedOfSecond / kFramesOfSecond;
  return (std::int64_t(double(steps) / (double(part) * kStepsOfFrame)) + 1) * part;
}

// The step that is nearest to a moment, halves to even ones.
std::int64_t step_at(std::int64_t moment) {
  return std::int64_t(std::nearbyint(double(moment) / kFramesOfSecond * kSteppedOfSecond));
}

}  // namespace

bool is_heard(std::int64_t states, const MomentRange& part) {
  return part.first < moments_of(stepped_count(states, kSteppedOfSecond), part.count);
}

Shape moments_shape(const Shape& states, const MomentRange& part) {
  if (states.size() != kStateAxes || states[1] != 1 ||
      stepped_count(states[2], kSteppedOfSecond) < 1)
    return {};
  return {1, states[0], states[3], part.count};
}

Tensor heard_moments(Context& ctx, const Value& heard, const MomentRange& part, bool none) {
  const Tensor all = heard.get<Tensor>(kAllStates, {});
  if (!all || all.rank() != kStateAxes)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "audio_encoder_output: it holds no states of an encoder. Link AudioEncoderEncode.");
  const Shape shape = moments_shape(all.shape(), part);
  if (shape.empty())
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "audio_encoder_output: it has " + std::to_string(all.size(1)) + " sounds of " +
                    std::to_string(all.size(2)) +
                    " states; a video goes with one, of two at least. Encode one sound of a "
                    "twentieth of a second or more.");
  const Tensor made = ctx.make_host(shape, HEDDLE_F32);
  float* const to = made.data<float>();
  std::fill_n(to, made.count(), 0.0f);
  if (none) return made;
  const std::int64_t layers = shape[1], numbers = shape[2], states = all.size(2),
                     steps = stepped_count(states, kSteppedOfSecond);
  // It may be on a device.
  HostMemory memory(ctx);
  std::pmr::vector<float> floats(std::size_t(all.count()), &memory);
  read_to<float>(ctx, all, floats);
  for (std::int64_t i = 0; i < part.count; ++i) {
    const std::int64_t step = step_at(part.first + i);
    if (step >= steps) break;
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    const StepPlace place = step_place(step, steps, states);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const float* const from = floats.data() + layer * states * numbers;
      for (std::int64_t k = 0; k < numbers; ++k)
        to[(layer * numbers + k) * part.count + i] = place.of(from, numbers, k);
    }
  }
  return made;
}

}  // namespace heddle::vae
