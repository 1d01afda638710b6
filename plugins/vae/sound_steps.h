// plugins/vae/sound_steps.h - states of a sound, 50 a second, brought to fewer a second, as
// ComfyUI's nodes do: between two states by their distance, the first and the last as they are.
// Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle::vae {

inline constexpr double kStatesOfSecond = 50;
// The field of an AUDIO_ENCODER_OUTPUT with the states of all layers (S, 1, T, K).
inline constexpr const char* kAllStates = "encoded_audio_all_layers";
inline constexpr std::size_t kStateAxes = 4;

// Steps, so many a second, of so many states.
inline std::int64_t stepped_count(std::int64_t states, double of_second) {
  return std::int64_t(double(states) / kStatesOfSecond * of_second);
}

// A step between two states, counted in f32 as PyTorch does.
struct StepPlace {
  std::int64_t from, to;
  float share;  // of the second

  float of(const float* states, std::int64_t width, std::int64_t number) const {
    return (1 - share) * states[from * width + number] + share * states[to * width + number];
  }
};
inline StepPlace step_place(std::int64_t step, std::int64_t steps, std::int64_t states) {
  const float each = steps > 1 ? float(states - 1) / float(steps - 1) : 0.0f,
              at = each * float(step);
  const std::int64_t from = std::min(std::int64_t(at), states - 1);
  return {from, std::min(from + 1, states - 1), std::clamp(at - float(from), 0.0f, 1.0f)};
}

}  // namespace heddle::vae
