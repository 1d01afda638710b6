#include "camera_input.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "concat_input.h"

namespace heddle::samplers {
namespace {

constexpr float kLongestCameraWave = 10000.0f;

float* put_waves(float number, std::int64_t width, float* to) {
  const std::int64_t half = width / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const float angle = number * std::exp(-std::log(kLongestCameraWave) * float(i) / float(half));
    to[i] = std::cos(angle);
    to[half + i] = std::sin(angle);
  }
  return to + width;
}

// In radians; a number in the place of a list is that of all frames.
std::vector<float> angles(const Value& field) {
  if (field.is(HEDDLE_KIND_FLOAT) || field.is(HEDDLE_KIND_INT)) return {float(field.as<double>())};
  std::vector<float> all;
  for (std::uint32_t i = 0; i < field.count(); ++i)
    all.push_back(float(field.item(i).as<double>()));
  if (all.empty()) all.push_back(0);
  return all;
}
float radians(float degrees) { return std::fmod(degrees, 360.0f) * float(std::numbers::pi / 180); }

}  // namespace

Tensor cameras_of(Context& ctx, const Value& entry, std::int64_t items) {
  const std::vector<float> above = angles(entry.field("elevation")),
                           around = angles(entry.field("azimuth"));
  const auto noise = float(entry.get<double>("augmentation_level", 0.0));
  const Tensor made = ctx.make_host({items, kCameraWaves}, HEDDLE_F32);
  float* to = made.data<float>();
  const auto at = [&](const std::vector<float>& all, std::int64_t item) {
    return all[std::size_t(spread_row(item, items, std::int64_t(all.size())))];
  };
  for (std::int64_t item = 0; item < items; ++item) {
    to = put_waves(noise, 256, to);
    to = put_waves(radians(90 - at(above, item)), 512, to);
    to = put_waves(radians(at(around, item)), 512, to);
  }
  return made;
}

}  // namespace heddle::samplers
