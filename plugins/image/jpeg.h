// JPEG files to 8-bit pictures and back. jpeg.cpp is the only file that knows libjpeg.
#pragma once

#include "plugins/image/picture.h"

namespace heddle::image {

// Baseline and progressive, grey, YCbCr, RGB, CMYK and YCCK as Pillow converts them. Of a file of
// several pictures (MPO), the first. Turned by its EXIF orientation.
std::vector<Frame> read_jpeg(const EncodedPicture& file);

// The file's bytes. REQUIRES: 3 channels; quality is 1 to 100. Throws HEDDLE_INVALID_ARGUMENT where
// a side is longer than a JPEG's can be.
std::string write_jpeg(const Picture& picture, int quality);

}  // namespace heddle::image
