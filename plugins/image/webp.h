// WebP files to 8-bit pictures and back. webp.cpp is the only file that knows libwebp.
#pragma once

#include <functional>

#include "plugins/image/picture.h"

namespace heddle::image {

// Lossy and lossless, still and animated: every picture of an animation whole, as it is shown.
// Turned by the EXIF orientation of the file.
std::vector<Frame> read_webp(const EncodedPicture& file);

struct WebpSettings {
  bool lossless = true;
  int quality = 80;     // 0 to 100
  int method = 4;       // 0 is fastest, 6 slowest
  int duration_ms = 0;  // of each picture
  std::string exif;     // a TIFF block for the EXIF chunk, or empty
};

// The file's bytes: an animation that is shown again and again, a still picture of one frame.
// frame(i) gives picture i of `count`; all have the same size, and 3 or 4 channels. Asks
// `cancelled` before each and throws HEDDLE_CANCELLED when it says so.
std::string write_webp(std::size_t count, const std::function<Picture(std::size_t)>& frame,
                       const WebpSettings& settings, const std::function<bool()>& cancelled);

}  // namespace heddle::image
