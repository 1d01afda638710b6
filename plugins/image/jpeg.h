// JPEG files to 8-bit pictures. jpeg.cpp is the only file that knows libjpeg.
#pragma once

#include "plugins/image/picture.h"

namespace heddle::image {

// Baseline and progressive, grey, YCbCr, RGB, CMYK and YCCK as Pillow converts them. Of a file of
// several pictures (MPO), the first. Turned by its EXIF orientation.
std::vector<Frame> read_jpeg(const EncodedPicture& file);

}  // namespace heddle::image
