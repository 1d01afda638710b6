// Pictures of work under way, as clients want to see them. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::engine {

inline constexpr unsigned kPreviewSide = 512;  // pixels of the longer side

// Scaled, up or down, so that its longer side has so many pixels; bilinear. `pixels`: height x
// width x 3, row-major.
struct RgbPicture {
  unsigned width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  // the same order
};
RgbPicture scaled(const std::uint8_t* pixels, unsigned width, unsigned height, unsigned side);

// The same as a JPEG of quality 95; empty where that cannot be made.
std::string preview_jpeg(const std::uint8_t* pixels, unsigned width, unsigned height,
                         unsigned side);

}  // namespace heddle::engine
