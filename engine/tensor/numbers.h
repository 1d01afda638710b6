// Elements of any type as numbers to calculate with on the host. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/tensor/dtype.h"

namespace heddle::engine {

// `dst` gets src.size() / dtype_size(dtype) numbers. `src` need not be aligned. Exact for types of
// up to 32 bits, nearest for f64. Throws Error(invalid_argument) for a type that is not floating.
void to_floats(DType dtype, std::span<const std::byte> src, float* dst);

// The other way round, rounded to nearest, halves to even: `dst` gets src.size() elements of f32,
// bf16 or f16. Throws Error(unsupported) for other types.
void from_floats(DType dtype, std::span<const float> src, std::byte* dst);

// Of any type; 64-bit integers beyond 2^53 are rounded.
std::vector<double> to_doubles(DType dtype, std::span<const std::byte> src);

}  // namespace heddle::engine
