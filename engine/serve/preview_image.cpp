#include "engine/serve/preview_image.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#ifdef HEDDLE_WITH_JPEG
#include <csetjmp>

#include <jpeglib.h>
#endif

namespace heddle::engine {
namespace {

// Where a pixel of the result lies between two of the source, along one side.
struct Between {
  std::size_t first = 0, second = 0;
  float share = 0;  // of the second
};

std::vector<Between> positions(unsigned from, unsigned to) {
  std::vector<Between> all(to);
  for (unsigned i = 0; i < to; ++i) {
    const double at = std::max(0.0, (i + 0.5) * from / to - 0.5);
    const auto first = std::min<std::size_t>(std::size_t(at), from - 1);
    all[i] = {first, std::min<std::size_t>(first + 1, from - 1), float(at - double(first))};
  }
  return all;
}

}  // namespace

RgbPicture scaled(const std::uint8_t* pixels, unsigned width, unsigned height, unsigned side) {
  if (width == 0 || height == 0) return {};
  const double factor = double(side) / std::max(width, height);
  const auto size = [&](unsigned of) { return std::max(1u, unsigned(std::lround(of * factor))); };
  RgbPicture result{size(width), size(height), {}};
  result.pixels.resize(std::size_t(result.width) * result.height * 3);
  const std::vector<Between> columns = positions(width, result.width);
  const std::vector<Between> rows = positions(height, result.height);
  std::uint8_t* to = result.pixels.data();
  for (const Between& row : rows) {
    const std::uint8_t *upper = pixels + row.first * width * 3,
                       *lower = pixels + row.second * width * 3;
    for (const Between& column : columns)
      for (std::size_t c = 0; c < 3; ++c) {
        const auto mix = [&](const std::uint8_t* line) {
          const float a = line[column.first * 3 + c], b = line[column.second * 3 + c];
          return a + (b - a) * column.share;
        };
        const float a = mix(upper), b = mix(lower);
        *to++ = std::uint8_t(a + (b - a) * row.share + 0.5f);
      }
  }
  return result;
}

#ifdef HEDDLE_WITH_JPEG
namespace {

struct JpegFailure : jpeg_error_mgr {
  std::jmp_buf back;
};

[[noreturn]] void jump_back(j_common_ptr jpeg) {
  std::longjmp(static_cast<JpegFailure*>(jpeg->err)->back, 1);
}

// Nothing with a destructor is made between setjmp and longjmp.
bool write_jpeg(const RgbPicture& picture, unsigned char*& data, unsigned long& bytes) {
  jpeg_compress_struct jpeg;
  JpegFailure failure;
  jpeg.err = jpeg_std_error(&failure);
  failure.error_exit = jump_back;
  failure.output_message = [](j_common_ptr) {};
  if (setjmp(failure.back) != 0) {
    jpeg_destroy_compress(&jpeg);
    return false;
  }
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, &data, &bytes);
  jpeg.image_width = picture.width;
  jpeg.image_height = picture.height;
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 95, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(picture.pixels.data()) +
                   std::size_t(jpeg.next_scanline) * picture.width * 3;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  return true;
}

}  // namespace

std::string preview_jpeg(const std::uint8_t* pixels, unsigned width, unsigned height,
                         unsigned side) {
  const RgbPicture picture = scaled(pixels, width, height, side);
  unsigned char* data = nullptr;
  unsigned long bytes = 0;
  std::string jpeg;
  if (picture.width > 0 && write_jpeg(picture, data, bytes))
    jpeg.assign(reinterpret_cast<const char*>(data), bytes);
  std::free(data);
  return jpeg;
}
#else
std::string preview_jpeg(const std::uint8_t*, unsigned, unsigned, unsigned) { return ""; }
#endif

}  // namespace heddle::engine
