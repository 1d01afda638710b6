// AVIF files to 8-bit pictures. avif.cpp is the only file that knows libavif.
#pragma once

#include "plugins/image/picture.h"

namespace heddle::image {

// Still and animated, 8 to 12 bits, with or without alpha; turned and mirrored by the file's own
// properties, which come before any EXIF.
std::vector<Frame> read_avif(const EncodedPicture& file);

}  // namespace heddle::image
