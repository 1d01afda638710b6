// Layouts of weights on this device. Matrices of 16 and 32 bits and those in blocks stay row-major
// (layout 0). Constants.
#pragma once

#include <cstdint>

namespace heddle::cuda {

// A filter (O, C, R, S) stored as (O, R, S, C): the channels of one tap side by side, as those of a
// pixel are.
constexpr std::uint32_t kChannelsLast = 1;

// A matrix of an f8 type, row-major, and behind it an f32 for every row: what its numbers are
// multiplied by.
constexpr std::uint32_t kScaledRows = 2;

// The same of f8_e4m3, for HEDDLE_USE_LINEAR_FP8: what it is multiplied with may be made such
// rows, too (linear_fp8.cu). A matrix that was not of f8_e4m3 has the scales that make the largest
// number of each row the largest one of the type.
constexpr std::uint32_t kFp8Rows = 3;

// A matrix of I8_SCALED or I8_ROTATED as rows of i8, row-major, and behind it an f32 for every row:
// it is multiplied as whole numbers (linear_int8.cu).
constexpr std::uint32_t kInt8Rows = 4;

inline bool has_scales(std::uint32_t layout) { return layout == kScaledRows || layout == kFp8Rows; }

// Where those of such a matrix begin, in bytes.
constexpr std::int64_t scales_offset(std::int64_t rows, std::int64_t columns) {
  return (rows * columns + 15) / 16 * 16;
}

}  // namespace heddle::cuda
