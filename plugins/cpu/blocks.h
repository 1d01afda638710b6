// Block formats, read in plain loops: 32 or 256 neighbours share their scales. Every number is its
// scales times a small whole number, in f32, with one rounding: products of a half and of whole
// numbers of at most 12 bits are exact, and so are sums of 256 numbers of 8 bits. Only an NVFP4
// number's scale is rounded by itself first, as a product of two. vector_blocks.h
// reads the same formats fast and gives the same bits. Pure functions.
#pragma once

#include <cstdint>

#include "heddle/abi/value.h"

namespace heddle::cpu {

// The first `count` elements of a row of blocks. REQUIRES: a block format; the last block may be
// used in part.
void load_blocks(heddle_dtype dtype, const void* from, std::int64_t count, float* to);

}  // namespace heddle::cpu
