// libFuzzer target: whatever the bytes, read_png() returns or throws Error; what it returns is
// whole, is turned upright without losing a pixel, and comes back the same after it was written.
// Build: clang++ -fsanitize=fuzzer,address,undefined.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "plugins/image/orientation.h"
#include "plugins/image/png.h"

using namespace heddle::image;

namespace {

constexpr std::size_t kMostPixelsWritten = 4096;  // larger ones would only slow the search

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

bool is_whole(const Picture& picture) {
  return picture.width > 0 && picture.height > 0 &&
         picture.pixels.size() == std::size_t{picture.width} * picture.height * picture.channels;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  PngContent content;
  try {
    content = read_png({data, size}, "fuzz");
  } catch (const heddle::Error& error) {
    require(std::string_view(error.what()).starts_with("fuzz: "),
            "an error starts with the file's name");
    return 0;
  }
  require(is_whole(content.picture), "every pixel is there");
  require(content.picture.channels == (content.alpha == Alpha::none ? 3u : 4u),
          "alpha is there when the file has it");
  const Picture picture = upright(content.picture, exif_orientation(content.exif));
  require(is_whole(picture), "turning keeps every pixel");
  if (std::size_t{picture.width} * picture.height > kMostPixelsWritten) return 0;
  const PngContent again = read_png(write_png(picture, {}, 1, [] { return false; }), "again");
  require(again.picture.pixels == picture.pixels, "what is written is read back");
  return 0;
}
