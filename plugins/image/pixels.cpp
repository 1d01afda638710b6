#include "plugins/image/pixels.h"

#include <algorithm>
#include <cmath>

namespace heddle::image {

Quantised quantise(std::span<const float> values, std::pmr::memory_resource& memory) {
  Quantised result{Bytes(&memory)};
  result.samples.reserve(values.size());
  for (const float value : values) {
    const bool is_nan = std::isnan(value);
    result.nan_count += is_nan ? 1 : 0;
    const float scaled = is_nan ? 0.0f : std::clamp(255.0f * value, 0.0f, 255.0f);
    result.samples.push_back(static_cast<std::uint8_t>(scaled));
  }
  return result;
}

void spread(const Picture& picture, std::span<float> rgb, std::span<float> mask) {
  const std::size_t count = std::size_t{picture.width} * picture.height;
  const std::uint8_t* from = picture.pixels.data();
  for (std::size_t i = 0; i < count; ++i, from += picture.channels) {
    if (!rgb.empty())
      for (std::size_t c = 0; c < 3; ++c) rgb[3 * i + c] = static_cast<float>(from[c]) / 255.0f;
    if (!mask.empty() && picture.channels == 4)
      mask[i] = 1.0f - static_cast<float>(from[3]) / 255.0f;
  }
}

}  // namespace heddle::image
