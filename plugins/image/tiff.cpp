#include "plugins/image/tiff.h"

#include <tiffio.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include "plugins/image/orientation.h"
#include "plugins/image/tiff_functions.h"

namespace heddle::image {
namespace {

struct TiffSource {
  std::span<const std::uint8_t> bytes;
  std::uint64_t at = 0;
  char message[200] = "";
};

tmsize_t take_tiff(thandle_t handle, void* to, tmsize_t size) {
  auto* source = static_cast<TiffSource*>(handle);
  const std::uint64_t left =
      source->at < source->bytes.size() ? source->bytes.size() - source->at : 0;
  const std::size_t count = std::min<std::uint64_t>(left, size < 0 ? 0 : std::uint64_t(size));
  if (count > 0) std::memcpy(to, source->bytes.data() + source->at, count);
  source->at += count;
  return tmsize_t(count);
}
tmsize_t put_tiff(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek_tiff(thandle_t handle, toff_t to, int whence) {
  auto* source = static_cast<TiffSource*>(handle);
  const std::uint64_t base = whence == SEEK_CUR   ? source->at
                             : whence == SEEK_END ? source->bytes.size()
                                                  : 0;
  return source->at = base + to;
}
int close_tiff(thandle_t) { return 0; }
toff_t size_of_tiff(thandle_t handle) { return static_cast<TiffSource*>(handle)->bytes.size(); }

__attribute__((format(printf, 4, 0))) int on_tiff_error(TIFF*, void* data, const char*,
                                                        const char* format, va_list values) {
  auto* source = static_cast<TiffSource*>(data);
  if (source->message[0] == '\0')  // the first says what is wrong
    std::vsnprintf(source->message, sizeof source->message, format, values);
  return 1;
}
int on_tiff_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct TiffClose {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};

// What a page's samples are.
struct TiffPage {
  std::uint32_t width = 0, height = 0;
  std::uint16_t bits = 1, samples = 1, colour = PHOTOMETRIC_MINISBLACK,
                planar = PLANARCONFIG_CONTIG, format = SAMPLEFORMAT_UINT, orientation = 1,
                extra_count = 0;
  const std::uint16_t* extras = nullptr;

  std::uint16_t colours() const {
    return colour == PHOTOMETRIC_RGB ? 3 : colour == PHOTOMETRIC_SEPARATED ? 4 : 1;
  }
  // What the sample behind the colours is: EXTRASAMPLE_..., -1 where there is none.
  int extra() const {
    if (samples <= colours()) return -1;
    return extra_count > 0 && extras != nullptr ? extras[0] : EXTRASAMPLE_UNASSALPHA;
  }
  bool has_alpha() const {
    return extra() >= 0 && extra() != EXTRASAMPLE_UNSPECIFIED && colour != PHOTOMETRIC_SEPARATED;
  }
  // Read here sample by sample; other kinds of colour are left to libtiff.
  bool is_plain() const {
    const bool is_known = colour == PHOTOMETRIC_MINISWHITE || colour == PHOTOMETRIC_MINISBLACK ||
                          colour == PHOTOMETRIC_RGB || colour == PHOTOMETRIC_PALETTE ||
                          colour == PHOTOMETRIC_SEPARATED;
    const bool has_bits = bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 ||
                          (bits == 32 && samples == 1);
    return is_known && has_bits && samples >= colours();
  }
};

class TiffReader {
 public:
  explicit TiffReader(const EncodedPicture& file) : file_(file), source_{file.bytes} {
    TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
    if (options == nullptr) throw std::bad_alloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options, &on_tiff_error, &source_);
    TIFFOpenOptionsSetWarningHandlerExtR(options, &on_tiff_warning, nullptr);
    // A strip may be a whole picture of 16 bytes a pixel.
    TIFFOpenOptionsSetMaxSingleMemAlloc(
        options, tmsize_t(std::min<std::uint64_t>(file.most_pixels, 1ull << 40) * 16 + (1 << 20)));
    tiff_.reset(TIFFClientOpenExt(file.name.c_str(), "rm", &source_, &take_tiff, &put_tiff,
                                  &seek_tiff, &close_tiff, &size_of_tiff, nullptr, nullptr,
                                  options));
    TIFFOpenOptionsFree(options);
    if (tiff_ == nullptr) refuse();
  }

  std::vector<Frame> read() {
    std::vector<Frame> frames;
    std::uint64_t pixels = 0;
    do {
      TiffPage page = page_here();
      check_pixels(file_, page.width, page.height);
      pixels += std::uint64_t{page.width} * page.height;
      if (pixels > kMostWhole * file_.most_pixels)
        check_pixels(file_, page.width, page.height, ~std::uint64_t{0});
      frames.push_back(page.is_plain() ? plain(page) : converted(page));
    } while (TIFFReadDirectory(tiff_.get()) != 0);
    if (source_.message[0] != '\0') refuse();
    return frames;
  }

 private:
  [[noreturn]] void refuse(const std::string& why = "") const {
    refuse_picture(file_, "TIFF",
                   !why.empty()                 ? why
                   : source_.message[0] != '\0' ? std::string(source_.message)
                                                : "damaged");
  }

  TiffPage page_here() {
    TIFF* tiff = tiff_.get();
    TiffPage page;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &page.width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &page.height);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &page.bits);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &page.samples);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &page.planar);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &page.format);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &page.orientation);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &page.extra_count, &page.extras);
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &page.colour);
    std::uint16_t compression = COMPRESSION_NONE;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &compression);
    if (page.colour == PHOTOMETRIC_YCBCR && compression == COMPRESSION_JPEG) {
      TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
      page.colour = PHOTOMETRIC_RGB;
    }
    return page;
  }

  Frame upright_frame(Picture picture, const TiffPage& page) const {
    const Alpha alpha = picture.channels == 4 ? Alpha::channel : Alpha::none;
    return {upright(std::move(picture), page.orientation), alpha};
  }

  Frame converted(const TiffPage& page) {
    std::vector<std::uint32_t> raster(std::size_t{page.width} * page.height);
    if (TIFFReadRGBAImageOriented(tiff_.get(), page.width, page.height, raster.data(),
                                  ORIENTATION_TOPLEFT, 1) == 0)
      refuse();
    Picture picture{page.width, page.height, 3, Bytes(file_.memory)};
    picture.pixels.reserve(raster.size() * 3);
    for (const std::uint32_t pixel : raster)
      for (const std::uint32_t value : {TIFFGetR(pixel), TIFFGetG(pixel), TIFFGetB(pixel)})
        picture.pixels.push_back(static_cast<std::uint8_t>(value));
    return {std::move(picture), Alpha::none};
  }

  // The samples of a page, plane after plane, as 8-bit numbers; indices stay what they are.
  Frame plain(const TiffPage& page) {
    const std::size_t pixels = std::size_t{page.width} * page.height;
    const std::uint16_t kept = std::uint16_t(page.colours() + (page.has_alpha() ? 1 : 0));
    Bytes planes(pixels * kept, file_.memory);
    if (TIFFIsTiled(tiff_.get()) != 0)
      read_tiles(page, kept, planes);
    else
      read_strips(page, kept, planes);
    Picture picture{page.width, page.height, page.has_alpha() ? 4u : 3u, Bytes(file_.memory)};
    picture.pixels.resize(pixels * picture.channels);
    const std::vector<std::uint8_t> palette = palette_of(page);
    for (std::size_t i = 0; i < pixels; ++i)
      put_pixel(page, palette, planes.data() + i * kept,
                picture.pixels.data() + i * picture.channels);
    return upright_frame(std::move(picture), page);
  }

  static void put_pixel(const TiffPage& page, const std::vector<std::uint8_t>& palette,
                        const std::uint8_t* from, std::uint8_t* to) {
    const std::uint16_t colours = page.colours();
    if (colours == 4) {
      cmyk_to_rgb(from, to);
    } else {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::uint8_t value = from[colours == 3 ? c : 0];
        to[c] = palette.empty() ? value : palette[3 * std::size_t{value} + c];
      }
    }
    if (!page.has_alpha()) return;
    const unsigned alpha = from[colours];
    to[3] = std::uint8_t(alpha);
    if (page.extra() == EXTRASAMPLE_ASSOCALPHA && colours == 3 && alpha > 0)  // multiplied by it
      for (std::size_t c = 0; c < 3; ++c)
        to[c] = std::uint8_t(std::min(255u, 255u * to[c] / alpha));
  }

  std::vector<std::uint8_t> palette_of(const TiffPage& page) {
    if (page.colour != PHOTOMETRIC_PALETTE) return {};
    std::uint16_t* channels[3] = {};
    if (page.bits > 8 ||
        TIFFGetField(tiff_.get(), TIFFTAG_COLORMAP, &channels[0], &channels[1], &channels[2]) == 0)
      refuse("it has no palette");
    std::vector<std::uint8_t> palette(3 * 256, 0);
    for (std::size_t i = 0; i < std::size_t{1} << page.bits; ++i)
      for (std::size_t c = 0; c < 3; ++c) palette[3 * i + c] = std::uint8_t(channels[c][i] >> 8);
    return palette;
  }

  static std::uint8_t sample(const TiffPage& page, const std::uint8_t* row, std::size_t index) {
    if (page.bits == 32) return wide_sample(page, row + 4 * index);
    const bool is_white_zero = page.colour == PHOTOMETRIC_MINISWHITE;
    if (page.bits == 16) {
      std::uint16_t value = 0;
      std::memcpy(&value, row + 2 * index, sizeof value);
      if (is_white_zero) value = std::uint16_t(0xffff - value);
      const bool is_wide_grey = page.samples == 1;
      return std::uint8_t(is_wide_grey ? std::min(value / 255, 255) : value >> 8);
    }
    const std::size_t per_byte = 8 / page.bits;
    const unsigned most = (1u << page.bits) - 1;
    unsigned value = row[index / per_byte] >> (8 - page.bits * (index % per_byte + 1)) & most;
    if (is_white_zero) value = most - value;
    const bool is_index = page.colour == PHOTOMETRIC_PALETTE;
    return std::uint8_t(is_index ? value : value * 255 / most);
  }

  static std::uint8_t wide_sample(const TiffPage& page, const std::uint8_t* from) {
    double value = 0;
    if (page.format == SAMPLEFORMAT_IEEEFP) {
      float number = 0;
      std::memcpy(&number, from, sizeof number);
      value = std::isnan(number) ? 0 : number;
    } else {
      std::int32_t number = 0;
      std::memcpy(&number, from, sizeof number);
      value = number * (1.0 / 255);
    }
    return std::uint8_t(std::clamp(value, 0.0, 255.0));
  }

  // Rows of a strip or a tile that lie at (x, y), into their places.
  struct Block {
    const std::uint8_t* bytes;
    std::size_t row_bytes;
    std::uint32_t x, y, width, height;
    std::uint16_t plane;
  };
  static void place(const TiffPage& page, const Block& block, std::uint16_t kept, Bytes& planes) {
    const bool is_apart = page.planar == PLANARCONFIG_SEPARATE;
    const std::size_t step = is_apart ? 1 : page.samples;
    for (std::uint32_t y = 0; y < block.height; ++y)
      for (std::uint32_t x = 0; x < block.width; ++x) {
        std::uint8_t* to =
            planes.data() + (std::size_t{block.y + y} * page.width + block.x + x) * kept;
        for (std::uint16_t c = is_apart ? block.plane : 0; c < (is_apart ? block.plane + 1 : kept);
             ++c)
          to[c] = sample(page, block.bytes + y * block.row_bytes, x * step + (is_apart ? 0 : c));
      }
  }

  std::uint16_t planes_to_read(const TiffPage& page, std::uint16_t kept) const {
    return page.planar == PLANARCONFIG_SEPARATE ? kept : std::uint16_t{1};
  }

  void read_strips(const TiffPage& page, std::uint16_t kept, Bytes& planes) {
    TIFF* tiff = tiff_.get();
    std::uint32_t rows = 0;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows);
    rows = std::clamp<std::uint32_t>(rows, 1, page.height);
    const tmsize_t row_bytes = TIFFScanlineSize(tiff);
    check_row(page, row_bytes, page.width);
    std::vector<std::uint8_t> strip(std::size_t(row_bytes) * rows);
    for (std::uint16_t plane = 0; plane < planes_to_read(page, kept); ++plane)
      for (std::uint32_t y = 0; y < page.height; y += rows) {
        const std::uint32_t count = std::min(rows, page.height - y);
        const tmsize_t wanted = row_bytes * tmsize_t(count);
        if (TIFFReadEncodedStrip(tiff, TIFFComputeStrip(tiff, y, plane), strip.data(), wanted) !=
            wanted)
          refuse();
        place(page, {strip.data(), std::size_t(row_bytes), 0, y, page.width, count, plane}, kept,
              planes);
      }
  }

  void read_tiles(const TiffPage& page, std::uint16_t kept, Bytes& planes) {
    TIFF* tiff = tiff_.get();
    std::uint32_t width = 0, height = 0;
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height);
    if (width == 0 || height == 0 ||
        std::uint64_t{width} * height > std::max<std::uint64_t>(file_.most_pixels, 1 << 16))
      refuse("its tiles are " + std::to_string(width) + " x " + std::to_string(height) + " pixels");
    const tmsize_t row_bytes = TIFFTileRowSize(tiff);
    check_row(page, row_bytes, width);
    std::vector<std::uint8_t> tile(std::size_t(row_bytes) * height);
    for (std::uint16_t plane = 0; plane < planes_to_read(page, kept); ++plane)
      for (std::uint32_t y = 0; y < page.height; y += height)
        for (std::uint32_t x = 0; x < page.width; x += width) {
          if (TIFFReadEncodedTile(tiff, TIFFComputeTile(tiff, x, y, 0, plane), tile.data(),
                                  tmsize_t(tile.size())) != tmsize_t(tile.size()))
            refuse();
          place(page,
                {tile.data(), std::size_t(row_bytes), x, y, std::min(width, page.width - x),
                 std::min(height, page.height - y), plane},
                kept, planes);
        }
  }

  // A row has all the bytes that its samples take, whatever the compression made of it.
  void check_row(const TiffPage& page, tmsize_t row_bytes, std::uint32_t width) const {
    const std::uint64_t samples =
        std::uint64_t{width} * (page.planar == PLANARCONFIG_SEPARATE ? 1 : page.samples);
    if (row_bytes <= 0 || std::uint64_t(row_bytes) < (samples * page.bits + 7) / 8)
      refuse("its rows make no sense");
  }

  const EncodedPicture& file_;
  TiffSource source_;
  std::unique_ptr<TIFF, TiffClose> tiff_;
};

}  // namespace

std::vector<Frame> read_tiff(const EncodedPicture& file) { return TiffReader(file).read(); }

}  // namespace heddle::image
