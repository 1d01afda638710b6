// The EXIF orientation of a picture: which of the eight ways to hold it is upright. Pure functions;
// any thread.
#pragma once

#include <cstdint>
#include <span>

#include "plugins/image/picture.h"

namespace heddle::image {

// 1 to 8, read from a TIFF block (an eXIf chunk, with or without "Exif\0\0" in front); 1 when it
// says nothing or makes no sense.
int exif_orientation(std::span<const std::uint8_t> exif);

// The picture as it is meant to be seen: turned and mirrored by EXIF's definition of the tag.
Picture upright(Picture picture, int orientation);

}  // namespace heddle::image
