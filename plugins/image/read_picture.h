// Picture files of every format that this build reads.
#pragma once

#include "plugins/image/picture.h"

namespace heddle::image {

// At least one picture, told apart by the file's first bytes, not by its name. A format whose
// library was missing when heddle was built is refused with the name of the package.
std::vector<Frame> read_pictures(const EncodedPicture& file);

}  // namespace heddle::image
