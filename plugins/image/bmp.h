// BMP files to 8-bit pictures.
#pragma once

#include "plugins/image/picture.h"

namespace heddle::image {

// Palettes of 1, 4 and 8 bits, 16, 24 and 32 bits, with masks of bits, run-length encoded,
// bottom-up and top-down. There is alpha where a mask names it.
std::vector<Frame> read_bmp(const EncodedPicture& file);

}  // namespace heddle::image
