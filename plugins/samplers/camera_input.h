// Where a camera stands at each frame, as SV3D reads it in the place of a pooled text: waves of the
// noise in the picture, of the angle from above and of that around, both in degrees. Formulas:
// ComfyUI's SV3D_p. One call's thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::samplers {

// A model's setting: the lists of a conditioning's field "elevation" and "azimuth" are its input
// "y" (items, kCameraWaves).
inline constexpr const char* kReadsCameras = "reads_cameras";
inline constexpr std::int64_t kCameraWaves = 256 + 512 + 512;

// Whether "y" is of cameras, or of numbers that the settings tell; and its shape then.
inline bool is_told_task(const Value& settings) {
  return settings.has(kReadsCameras) || settings.has("task_numbers");
}
inline Shape task_shape(const Value& settings, std::int64_t items) {
  if (settings.has(kReadsCameras)) return {items, kCameraWaves};
  return {1, std::int64_t(settings.field("task_numbers").count())};
}

// In host memory, f32. An entry without cameras has them at 0 degrees; lists of another length are
// spread over the items.
Tensor cameras_of(Context& ctx, const Value& entry, std::int64_t items);

}  // namespace heddle::samplers
