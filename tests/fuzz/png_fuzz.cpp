// libFuzzer target: whatever the bytes, read_png() returns or throws Error; what it returns is
// whole, is turned upright without losing a pixel, and comes back the same after it was written.
// Each input is read twice, as it is and with the checksums of its chunks made right, because what
// lies behind a wrong one is never reached. Build: clang++ -fsanitize=fuzzer,address,undefined.
#include <boost/crc.hpp>
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

std::uint32_t number_at(const std::vector<std::uint8_t>& file, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | file[at + i];
  return value;
}

void mend_checksums(std::vector<std::uint8_t>& file) {
  constexpr std::size_t kSignature = 8, kFrame = 12;  // length, name and checksum of a chunk
  for (std::size_t at = kSignature; at + kFrame <= file.size();) {
    const std::size_t length = number_at(file, at);
    if (length > file.size() - at - kFrame) return;
    boost::crc_32_type crc;
    crc.process_bytes(file.data() + at + 4, length + 4);
    for (std::size_t i = 0; i < 4; ++i)
      file[at + 8 + length + i] = static_cast<std::uint8_t>(crc.checksum() >> (24 - 8 * i));
    at += kFrame + length;
  }
}

void try_file(const std::vector<std::uint8_t>& file) {
  PngContent content;
  try {
    content = read_png({file, "fuzz"});
  } catch (const heddle::Error& error) {
    require(std::string_view(error.what()).starts_with("fuzz: "),
            "an error starts with the file's name");
    return;
  }
  require(is_whole(content.picture), "every pixel is there");
  require(content.picture.channels == (content.alpha == Alpha::none ? 3u : 4u),
          "alpha is there when the file has it");
  const Picture picture = upright(content.picture, exif_orientation(content.exif));
  require(is_whole(picture), "turning keeps every pixel");
  if (std::size_t{picture.width} * picture.height > kMostPixelsWritten) return;
  const PngContent again = read_png({write_png(picture, {}, 1, [] { return false; }), "again"});
  require(again.picture.pixels == picture.pixels, "what is written is read back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> file(data, data + size);
  try_file(file);
  mend_checksums(file);
  try_file(file);
  return 0;
}
