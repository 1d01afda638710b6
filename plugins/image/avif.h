// AVIF files to 8-bit pictures and back. avif.cpp is the only file that knows libavif.
#pragma once

#include <functional>

#include "plugins/image/picture.h"

namespace heddle::image {

// Still and animated, 8 to 12 bits, with or without alpha; turned and mirrored by the file's own
// properties, which come before any EXIF.
std::vector<Frame> read_avif(const EncodedPicture& file);

enum class AvifLight { srgb, hlg, pq };  // of what the numbers are; the last two in BT.2020

struct AvifSettings {
  AvifLight light = AvifLight::srgb;
  int depth = 8;           // bits, 8 or 10
  int quality = 18;        // of the codec, 0 is best, 63 worst
  std::uint64_t rate = 1;  // frames in 1000 seconds
  std::string exif;        // a TIFF block, or empty
};

// Samples of 16 bits, in the processor's order: RGB, 4:2:0 in limited range in the file.
struct WidePicture {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint16_t> rgb;
};

// The file's bytes: a still picture of one frame, else an animation. frame(i) gives picture i of
// `count`; all have the same size. Asks `cancelled` before each and throws HEDDLE_CANCELLED when it
// says so.
std::string write_avif(std::size_t count, const std::function<WidePicture(std::size_t)>& frame,
                       const AvifSettings& settings, const std::function<bool()>& cancelled);

}  // namespace heddle::image
