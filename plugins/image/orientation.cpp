#include "plugins/image/orientation.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace heddle::image {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShort = 3;      // TIFF type of 16-bit numbers
constexpr std::size_t kEntryBytes = 12;  // tag, type, count, value

// Numbers of a TIFF block in its byte order; nothing where the block ends before.
class Tiff {
 public:
  Tiff(std::span<const std::uint8_t> bytes, bool is_little)
      : bytes_(bytes), is_little_(is_little) {}

  std::optional<std::uint32_t> number(std::size_t at, std::size_t width) const {
    if (at > bytes_.size() || bytes_.size() - at < width) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < width; ++i)
      value = value << 8 | bytes_[at + (is_little_ ? width - 1 - i : i)];
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool is_little_;
};

}  // namespace

int exif_orientation(std::span<const std::uint8_t> exif) {
  constexpr std::string_view kPrefix("Exif\0\0", 6);
  if (exif.size() >= kPrefix.size() &&
      std::memcmp(exif.data(), kPrefix.data(), kPrefix.size()) == 0)
    exif = exif.subspan(kPrefix.size());
  if (exif.size() < 8) return 1;
  const bool is_little = exif[0] == 'I' && exif[1] == 'I';
  if (!is_little && !(exif[0] == 'M' && exif[1] == 'M')) return 1;
  const Tiff tiff(exif, is_little);
  if (tiff.number(2, 2) != 42u) return 1;
  const std::size_t directory = *tiff.number(4, 4);
  const std::optional<std::uint32_t> count = tiff.number(directory, 2);
  for (std::size_t i = 0; i < count.value_or(0); ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    const std::optional<std::uint32_t> tag = tiff.number(entry, 2);
    if (!tag) return 1;
    if (*tag != kOrientationTag || tiff.number(entry + 2, 2) != kShort) continue;
    const std::uint32_t value = tiff.number(entry + 8, 2).value_or(1);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Picture upright(Picture picture, int orientation) {
  if (orientation <= 1) return picture;
  // EXIF: where the stored row 0 and column 0 are in the scene. 5 to 8 swap the axes; then the
  // stored rows run along the result's columns.
  const bool swaps = orientation >= 5;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const std::size_t width = swaps ? picture.height : picture.width;
  const std::size_t height = swaps ? picture.width : picture.height;
  Picture result{static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height),
                 picture.channels, Bytes(picture.pixels.get_allocator())};
  result.pixels.resize(picture.pixels.size());
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t u = from_right ? width - 1 - x : x, v = from_bottom ? height - 1 - y : y;
      const std::size_t from = swaps ? u * picture.width + v : v * picture.width + u;
      std::copy_n(
          picture.pixels.begin() + static_cast<std::ptrdiff_t>(from * picture.channels),
          picture.channels,
          result.pixels.begin() + static_cast<std::ptrdiff_t>((y * width + x) * picture.channels));
    }
  }
  return result;
}

}  // namespace heddle::image
