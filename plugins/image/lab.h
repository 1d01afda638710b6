// CIE Lab of sRGB colours, D65, with the constants of the library kornia. Pure; any thread.
#pragma once

#include <array>

namespace heddle::image {

using Colour = std::array<double, 3>;

// From 0 to 1; L from 0 to 100.
Colour lab_of_rgb(const Colour& rgb);
// Clipped to 0 ... 1.
Colour rgb_of_lab(const Colour& lab);

}  // namespace heddle::image
