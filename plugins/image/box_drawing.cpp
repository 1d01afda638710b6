#include "plugins/image/box_drawing.h"

#include <algorithm>

namespace heddle::image {
namespace {

Box in_order(Box box) {
  if (box.right < box.left) std::swap(box.left, box.right);
  if (box.bottom < box.top) std::swap(box.top, box.bottom);
  return box;
}

std::uint8_t blended(int share, int below, int above) {
  const int sum = below * (255 - share) + above * share + 128;
  return std::uint8_t(((sum >> 8) + sum) >> 8);
}

}  // namespace

BytePicture::BytePicture(const Extent& extent, std::pmr::memory_resource& memory)
    : width_(extent.width),
      height_(extent.height),
      channels_(extent.channels),
      bytes_(std::size_t(extent.picture()), 0, &memory),
      coverage_(extent.width, extent.height, memory) {}

void BytePicture::read(const Pixels& from, std::int64_t i) {
  const float* const values = from.row(i, 0);
  for (std::size_t k = 0; k < bytes_.size(); ++k)
    bytes_[k] = std::uint8_t(std::clamp(values[k] * 255.0f, 0.0f, 255.0f));
}

void BytePicture::write(const Canvas& to, std::int64_t i) const {
  std::transform(bytes_.begin(), bytes_.end(), to.row(i, 0),
                 [](std::uint8_t byte) { return float(byte) / 255.0f; });
}

void BytePicture::set(std::int64_t x, std::int64_t y, const Rgb& colour) {
  std::uint8_t* const pixel = std::copy(colour.begin(), colour.end(), at(x, y));
  if (channels_ == 4) *pixel = 255;
}

void BytePicture::fill(const Box& given, const Rgb& colour) {
  const Box box = in_order(given);
  for (std::int64_t y = std::max<std::int64_t>(0, box.top); y <= std::min(box.bottom, height_ - 1);
       ++y)
    for (std::int64_t x = std::max<std::int64_t>(0, box.left); x <= std::min(box.right, width_ - 1);
         ++x)
      set(x, y, colour);
}

void BytePicture::outline(const Box& given, const Rgb& colour, int width) {
  const Box box = in_order(given);
  for (std::int64_t i = 0; i < width; ++i) {
    fill({box.left, box.top + i, box.right, box.top + i}, colour);
    fill({box.left, box.bottom - i, box.right, box.bottom - i}, colour);
    // Of a line without a length nothing is drawn, and never its last pixel.
    const std::int64_t from = box.top + width, to = box.bottom - width + 1;
    if (from == to) continue;
    const std::int64_t top = from < to ? from : to + 1, bottom = from < to ? to - 1 : from;
    fill({box.right - i, top, box.right - i, bottom}, colour);
    fill({box.left + i, top, box.left + i, bottom}, colour);
  }
}

void BytePicture::text(const Font& font, const std::string& line, std::int64_t x, std::int64_t y,
                       const Rgb& colour) {
  font.draw(code_points(line), x, y, Anchor::left, 0, coverage_);
  for (std::int64_t row = coverage_.first(); row < coverage_.end(); ++row)
    for (std::int64_t column = 0; column < width_; ++column) {
      const int share = coverage_.row(row)[column];
      std::uint8_t* const pixel = at(column, row);
      const bool is_clear = channels_ == 4 && pixel[3] == 0;
      for (std::size_t c = 0; share != 0 && c < 3; ++c)
        pixel[c] = blended(is_clear ? 255 : share, pixel[c], colour[c]);
      if (channels_ == 4) pixel[3] = blended(share, pixel[3], 255);
    }
  coverage_.clear();
}

}  // namespace heddle::image
