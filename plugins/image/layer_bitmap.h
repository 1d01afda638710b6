// RGBA pictures of bytes, turned and resized as Pillow does: what is transparent lends no colour to
// its neighbours. One call's thread.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <vector>

namespace heddle::image {

struct LayerBitmap {
  std::int64_t width = 0, height = 0;
  std::pmr::vector<std::uint8_t> rgba;

  std::uint8_t* at(std::int64_t x, std::int64_t y) { return rgba.data() + (y * width + x) * 4; }
  const std::uint8_t* at(std::int64_t x, std::int64_t y) const {
    return rgba.data() + (y * width + x) * 4;
  }
};

LayerBitmap flipped(const LayerBitmap& from, bool horizontally, bool vertically);
// By Lanczos. REQUIRES: sizes of at least 1.
LayerBitmap resized_bitmap(const LayerBitmap& from, std::int64_t width, std::int64_t height);
// Against the clock, in degrees, by cubic interpolation; all of it is kept, and what is around it
// is transparent.
LayerBitmap rotated(const LayerBitmap& from, double degrees);

}  // namespace heddle::image
