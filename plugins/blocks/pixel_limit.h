// How large the pictures may be that are read from files, so that a file cannot ask for all memory.
#pragma once

#include <cstdint>

namespace heddle::blocks {

// A larger picture is refused, as Pillow refuses it: 2 * 2^30 / 4 / 3 pixels.
inline constexpr std::uint64_t kMostPixels = 178956970;
// All pictures of a file together have at most so many times the pixels that one may have.
inline constexpr std::uint64_t kMostWhole = 16;

// The limit of one picture: kMostPixels, or HEDDLE_MOST_PIXELS of the environment. Throws
// HEDDLE_INVALID_ARGUMENT where that is no whole number from 1 to 2^40.
std::uint64_t most_pixels();

}  // namespace heddle::blocks
