#include "plugins/image/bmp.h"

#include <algorithm>
#include <array>
#include <bit>

// The layout is that of Windows' BITMAPFILEHEADER (14 bytes) and BITMAPINFOHEADER, numbers are
// little-endian.

namespace heddle::image {
namespace {

constexpr std::size_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40, kMaskedHeader = 52;
constexpr std::uint32_t kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3, kMasksWithAlpha = 6;

class BmpReader {
 public:
  explicit BmpReader(const EncodedPicture& file) : file_(file), data_(file.bytes) {}

  Frame read() {
    read_header();
    check_pixels(file_, width_, height_);
    const bool has_runs = compression_ == kRuns8 || compression_ == kRuns4;
    if (!has_runs && (data_.size() < start_ || data_.size() - start_ < row_bytes() * height_))
      refuse("the file ends early");
    Picture picture{width_, height_, masks_[3] != 0 ? 4u : 3u, Bytes(file_.memory)};
    if (bits_ <= 8) {
      const std::vector<std::uint8_t> indices = has_runs ? runs() : rows_of_indices();
      picture.pixels.reserve(indices.size() * 3);
      for (const std::uint8_t index : indices) put_colour(index, picture.pixels);
    } else {
      read_colours(picture.pixels);
    }
    const Alpha alpha = picture.channels == 4 ? Alpha::channel : Alpha::none;
    return {std::move(picture), alpha};
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { refuse_picture(file_, "BMP", why); }

  std::uint32_t number(std::size_t at, std::size_t width) const {
    if (at > data_.size() || data_.size() - at < width) refuse("the file ends early");
    std::uint32_t value = 0;
    for (std::size_t i = width; i-- > 0;) value = value << 8 | data_[at + i];
    return value;
  }

  void read_header() {
    start_ = number(10, 4);
    const std::uint32_t header = number(kFileHeader, 4);
    const bool is_core = header == kCoreHeader;
    if (!is_core && header < kInfoHeader)
      refuse("its header has " + std::to_string(header) + " bytes");
    if (is_core) {
      width_ = number(18, 2);
      height_ = number(20, 2);
      bits_ = number(24, 2);
    } else {
      width_ = number(18, 4);
      const auto height = static_cast<std::int32_t>(number(22, 4));
      is_top_down_ = height < 0;
      height_ = is_top_down_ ? 0u - static_cast<std::uint32_t>(height)
                             : static_cast<std::uint32_t>(height);
      bits_ = number(28, 2);
      compression_ = number(30, 4);
      colours_ = number(46, 4);
    }
    check_kind();
    if (bits_ > 8) return read_masks(header);
    if (colours_ == 0 || colours_ > 256) colours_ = 1u << bits_;
    palette_at_ = kFileHeader + header;
    palette_step_ = is_core ? 3 : 4;
  }

  void check_kind() const {
    const bool fits =
        compression_ == kPlain
            ? bits_ == 1 || bits_ == 4 || bits_ == 8 || bits_ == 16 || bits_ == 24 || bits_ == 32
        : compression_ == kRuns8 ? bits_ == 8
        : compression_ == kRuns4 ? bits_ == 4
                                 : (bits_ == 16 || bits_ == 32) &&
                                       (compression_ == kMasks || compression_ == kMasksWithAlpha);
    if (!fits)
      refuse("it has " + std::to_string(bits_) + " bits a pixel and compression " +
             std::to_string(compression_));
  }

  void read_masks(std::uint32_t header) {
    if (compression_ == kPlain) {
      masks_ = bits_ == 16 ? std::array<std::uint32_t, 4>{0x7c00, 0x3e0, 0x1f, 0}
                           : std::array<std::uint32_t, 4>{0xff0000, 0xff00, 0xff, 0};
      return;
    }
    // Behind a plain header stand three masks; longer ones hold a fourth.
    for (std::size_t i = 0; i < 3; ++i) masks_[i] = number(kFileHeader + kInfoHeader + 4 * i, 4);
    if (header > kMaskedHeader || compression_ == kMasksWithAlpha)
      masks_[3] = number(kFileHeader + kMaskedHeader, 4);
    if (masks_[0] == 0 || masks_[1] == 0 || masks_[2] == 0) refuse("a colour has no bits");
  }

  std::size_t row_bytes() const { return (std::size_t{width_} * bits_ + 31) / 32 * 4; }
  std::size_t row_at(std::size_t y) const {
    return start_ + (is_top_down_ ? y : height_ - 1 - y) * row_bytes();
  }

  std::vector<std::uint8_t> rows_of_indices() const {
    std::vector<std::uint8_t> indices;
    indices.reserve(std::size_t{width_} * height_);
    const std::uint32_t per_byte = 8 / bits_, mask = (1u << bits_) - 1;
    for (std::size_t y = 0; y < height_; ++y)
      for (std::uint32_t x = 0; x < width_; ++x) {
        const unsigned byte = data_[row_at(y) + x / per_byte];
        const unsigned shift = 8 - bits_ * (x % per_byte + 1);
        indices.push_back(static_cast<std::uint8_t>(byte >> shift & mask));
      }
    return indices;
  }

  // Pairs of a count and a colour; a count of 0 begins what else there is: the end of a row, the
  // end, a jump, or pixels one by one, padded to 16 bits.
  std::vector<std::uint8_t> runs() const {
    std::vector<std::uint8_t> indices(std::size_t{width_} * height_, 0);
    std::size_t at = start_, x = 0, y = 0;
    const auto put = [&](std::uint32_t index) {
      if (x < width_ && y < height_)
        indices[(is_top_down_ ? y : height_ - 1 - y) * width_ + x] =
            static_cast<std::uint8_t>(index);
      ++x;
    };
    const auto nibble = [&](std::uint32_t byte, std::size_t i) {
      return bits_ == 8 ? byte : i % 2 == 0 ? byte >> 4 : byte & 15;
    };
    while (y < height_) {
      const std::uint32_t count = number(at, 1), value = number(at + 1, 1);
      at += 2;
      if (count > 0) {
        for (std::size_t i = 0; i < count; ++i) put(nibble(value, i));
      } else if (value == 0) {
        x = 0;
        ++y;
      } else if (value == 1) {
        break;
      } else if (value == 2) {
        x += number(at, 1);
        y += number(at + 1, 1);
        at += 2;
      } else {
        const std::size_t bytes = bits_ == 8 ? value : (value + 1) / 2;
        for (std::size_t i = 0; i < value; ++i)
          put(nibble(number(at + (bits_ == 8 ? i : i / 2), 1), i));
        at += bytes + bytes % 2;
      }
    }
    return indices;
  }

  // Colours stand as blue, green, red; one outside of the palette is black.
  void put_colour(std::uint8_t index, Bytes& to) const {
    const std::size_t at = palette_at_ + index * palette_step_;
    const bool is_there = index < colours_ && at + 3 <= data_.size();
    for (std::size_t c = 3; c-- > 0;) to.push_back(is_there ? data_[at + c] : 0);
  }

  void read_colours(Bytes& to) const {
    to.reserve(std::size_t{width_} * height_ * 4);
    const std::size_t step = bits_ / 8;
    for (std::size_t y = 0; y < height_; ++y)
      for (std::uint32_t x = 0; x < width_; ++x) {
        const std::uint32_t pixel = number(row_at(y) + x * step, step);
        for (const std::uint32_t mask : masks_)
          if (mask != 0) to.push_back(scaled(pixel, mask));
      }
  }
  static std::uint8_t scaled(std::uint32_t pixel, std::uint32_t mask) {
    const int shift = std::countr_zero(mask);
    const std::uint64_t value = (pixel & mask) >> shift, most = mask >> shift;
    return static_cast<std::uint8_t>(value * 255 / most);
  }

  const EncodedPicture& file_;
  std::span<const std::uint8_t> data_;
  std::uint32_t width_ = 0, height_ = 0, bits_ = 0, compression_ = kPlain, colours_ = 0;
  bool is_top_down_ = false;
  std::size_t start_ = 0, palette_at_ = 0, palette_step_ = 4;
  std::array<std::uint32_t, 4> masks_{};  // red, green, blue, alpha; 0: none
};

}  // namespace

std::vector<Frame> read_bmp(const EncodedPicture& file) {
  std::vector<Frame> frames;
  frames.push_back(BmpReader(file).read());
  return frames;
}

}  // namespace heddle::image
