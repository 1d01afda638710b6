// Drawing on 8-bit pictures as Pillow's ImageDraw does. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

#include "plugins/image/font.h"
#include "plugins/image/host_pixels.h"

namespace heddle::image {

using Rgb = std::array<std::uint8_t, 3>;

// Corners are inside. What has them the wrong way round is turned.
struct Box {
  std::int64_t left, top, right, bottom;
};

class BytePicture {
 public:
  // Black. channels: 3 or 4, the fourth is alpha.
  BytePicture(const Extent& extent, std::pmr::memory_resource& memory);

  // Picture i of a batch, 255 x truncated; of three or four channels.
  void read(const Pixels& from, std::int64_t i);
  // Divided by 255.
  void write(const Canvas& to, std::int64_t i) const;
  std::uint8_t* at(std::int64_t x, std::int64_t y) {
    return bytes_.data() + (y * width_ + x) * channels_;
  }

  void fill(const Box& box, const Rgb& colour);
  // The edges of a box, which grow inwards; of one that is too small, outwards.
  void outline(const Box& box, const Rgb& colour, int width);
  // A line of text whose upper left corner is there.
  void text(const Font& font, const std::string& line, std::int64_t x, std::int64_t y,
            const Rgb& colour);

 private:
  void set(std::int64_t x, std::int64_t y, const Rgb& colour);

  const std::int64_t width_, height_, channels_;
  std::pmr::vector<std::uint8_t> bytes_;
  Coverage coverage_;
};

}  // namespace heddle::image
