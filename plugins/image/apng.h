// Animated PNG files: PNG with the chunks acTL, fcTL and fdAT of its third edition. Built on png.h.
#pragma once

#include "plugins/image/png.h"

namespace heddle::image {

// All pictures of a PNG file, one for a file that does not move. Of an animation: the picture that
// plain readers show where it is no part of it, then every picture whole, as it is shown. Turned by
// the EXIF orientation of the file.
std::vector<Frame> read_png_frames(const EncodedPicture& file);

struct ApngSettings {
  int level = 4;        // zlib's, 0 to 9
  int duration_ms = 0;  // of each picture
  // Content of chunks "comf" behind the pixels.
  std::vector<std::string> notes;
};

// The file's bytes: shown again and again; a plain PNG of one picture. frame(i) gives picture i of
// `count`; all have the same size and channels. Asks `cancelled` now and then and throws
// HEDDLE_CANCELLED when it says so.
std::string write_apng(std::size_t count, const std::function<Picture(std::size_t)>& frame,
                       const ApngSettings& settings, const std::function<bool()>& cancelled);

}  // namespace heddle::image
