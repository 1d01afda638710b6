// TIFF files to 8-bit pictures. tiff.cpp is the only file that knows libtiff.
#pragma once

#include "plugins/image/picture.h"

namespace heddle::image {

// All pages of a file, in strips and tiles and with every compression that libtiff has: grey,
// palettes, RGB, CMYK of 1 to 16 bits, grey of 32 bits too, alpha as Pillow takes it; other kinds
// of colour as libtiff converts them. Turned by the orientation of each page. 16-bit samples keep
// their high byte; 16-bit and 32-bit grey is divided by 255 and clipped, as ComfyUI does for wide
// grey.
std::vector<Frame> read_tiff(const EncodedPicture& file);

}  // namespace heddle::image
