// GIF files to 8-bit pictures. gif.cpp is the only file that knows giflib.
#pragma once

#include "plugins/image/picture.h"

namespace heddle::image {

// Every picture of an animation whole, as it is shown: drawn over what the ones before left, as
// Pillow does. There is alpha when the first has a transparent colour.
std::vector<Frame> read_gif(const EncodedPicture& file);

}  // namespace heddle::image
