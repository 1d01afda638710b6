#include "plugins/image/read_picture.h"

#include <cstring>

#include "plugins/image/apng.h"
#include "plugins/image/bmp.h"
#ifdef HEDDLE_WITH_JPEG
#include "plugins/image/jpeg.h"
#endif
#ifdef HEDDLE_WITH_WEBP
#include "plugins/image/webp.h"
#endif
#ifdef HEDDLE_WITH_GIF
#include "plugins/image/gif.h"
#endif
#ifdef HEDDLE_WITH_TIFF
#include "plugins/image/tiff.h"
#endif
#ifdef HEDDLE_WITH_AVIF
#include "plugins/image/avif.h"
#endif

namespace heddle::image {
namespace {

using Reader = std::vector<Frame> (*)(const EncodedPicture&);

// Bytes at a place by which a format is known.
struct Signature {
  std::size_t at;
  std::string_view bytes;
  bool fits(std::span<const std::uint8_t> file) const {
    return file.size() >= at + bytes.size() &&
           std::memcmp(file.data() + at, bytes.data(), bytes.size()) == 0;
  }
};

struct Format {
  const char* name;
  const char* package;  // of Debian, which brings its library
  Reader read;          // NULL: not in this build
  Signature signature, other;
};

constexpr Signature kNever{SIZE_MAX / 2, ""};

#ifdef HEDDLE_WITH_JPEG
constexpr Reader kJpeg = &read_jpeg;
#else
constexpr Reader kJpeg = nullptr;
#endif
#ifdef HEDDLE_WITH_WEBP
constexpr Reader kWebp = &read_webp;
#else
constexpr Reader kWebp = nullptr;
#endif
#ifdef HEDDLE_WITH_GIF
constexpr Reader kGif = &read_gif;
#else
constexpr Reader kGif = nullptr;
#endif
#ifdef HEDDLE_WITH_TIFF
constexpr Reader kTiff = &read_tiff;
#else
constexpr Reader kTiff = nullptr;
#endif
#ifdef HEDDLE_WITH_AVIF
constexpr Reader kAvif = &read_avif;
#else
constexpr Reader kAvif = nullptr;
#endif

using namespace std::string_view_literals;

constexpr Format kFormats[] = {
    {"PNG", "libpng-dev", &read_png_frames, {0, "\x89PNG\r\n\x1a\n"sv}, kNever},
    {"JPEG", "libjpeg-dev", kJpeg, {0, "\xff\xd8\xff"sv}, kNever},
    {"WebP", "libwebp-dev", kWebp, {8, "WEBP"sv}, kNever},
    {"GIF", "libgif-dev", kGif, {0, "GIF87a"sv}, {0, "GIF89a"sv}},
    {"TIFF", "libtiff-dev", kTiff, {0, "II\x2a\0"sv}, {0, "MM\0\x2a"sv}},
    {"TIFF", "libtiff-dev", kTiff, {0, "II\x2b\0"sv}, {0, "MM\0\x2b"sv}},
    {"AVIF", "libavif-dev", kAvif, {4, "ftypavif"sv}, {4, "ftypavis"sv}},
    {"AVIF", "libavif-dev", kAvif, {4, "ftypmif1"sv}, {4, "ftypmsf1"sv}},
    {"BMP", "", &read_bmp, {0, "BM"sv}, kNever},
};

}  // namespace

std::vector<Frame> read_pictures(const EncodedPicture& file) {
  if (file.bytes.empty()) throw Error(HEDDLE_INVALID_ARGUMENT, file.name + ": the file is empty.");
  for (const Format& format : kFormats) {
    if (!format.signature.fits(file.bytes) && !format.other.fits(file.bytes)) continue;
    if (format.read != nullptr) return format.read(file);
    throw Error(HEDDLE_UNSUPPORTED, file.name + ": this build of heddle reads no " + format.name +
                                        ". Install " + format.package + " and build it again.");
  }
  std::string names;
  for (const Format& format : kFormats)
    if (format.read != nullptr && names.find(format.name) == std::string::npos)
      names += std::string(names.empty() ? "" : ", ") + format.name;
  throw Error(
      HEDDLE_INVALID_ARGUMENT,
      file.name + ": this is no picture that is read here. Convert it to one of: " + names + ".");
}

}  // namespace heddle::image
