// Numbers of any element type, by way of long double, whose 64-bit mantissa holds every one of them
// exactly: so each conversion rounds once. Slow; for copies between types, and for weights, which
// are converted once. Pure functions.
#pragma once

#include "heddle/abi/value.h"

namespace heddle::cpu {

long double load_number(heddle_dtype dtype, const void* from);

// To floats: nearest even; what is too large becomes infinity, or NaN in f8_e4m3, which has no
// infinity. To integers: truncated toward zero and saturated, NaN is 0. To bool: whether it is not
// zero.
void store_number(heddle_dtype dtype, long double value, void* to);

}  // namespace heddle::cpu
