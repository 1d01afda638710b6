// Shapes and strides of tensors, as the C ABI writes them down (heddle_tensor_info). Sizes and
// strides count elements. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "heddle/abi/value.h"

namespace heddle::engine {

// What a tensor may take at most: more than any machine has, and so little that sums of some ten
// thousands of them, and products of one with its element's size, fit into 64 bits.
inline constexpr std::int64_t kMostTensorBytes = std::int64_t{1} << 48;

// A row-major tensor of that shape. Throws invalid_argument for more than 8 axes, a negative size,
// or more than kMostTensorBytes.
heddle_tensor_info make_info(heddle_dtype dtype, std::span<const std::int64_t> shape);

// Checks rank, sizes and type of what a plugin handed over, and fills in row-major strides where
// all of them are zero. `what` begins the message. Neither the elements nor what lies between them
// take more than kMostTensorBytes. Of a block format the innermost size is a multiple of the block,
// and the blocks of a row lie one after another.
heddle_tensor_info checked_info(const heddle_tensor_info& info, std::string_view what);

std::int64_t element_count(const heddle_tensor_info& info);

// Bytes of a row-major copy.
std::uint64_t dense_bytes(const heddle_tensor_info& info);

// Whether the elements lie one after another in row-major order.
bool is_contiguous(const heddle_tensor_info& info);

bool same_shape(const heddle_tensor_info& a, const heddle_tensor_info& b);

// Bytes from element (0, ...) to the end of the last one that is touched: what a tensor of these
// strides needs, where none of them is negative.
std::uint64_t span_bytes(const heddle_tensor_info& info);

// Lowest and one past the highest element offset that is touched, relative to element (0, ...). {0,
// 0} when empty.
struct Extent {
  std::int64_t begin = 0, end = 0;
};
Extent extent(const heddle_tensor_info& info);

// "f32 (1, 16, 32, 32)".
std::string describe(const heddle_tensor_info& info);

}  // namespace heddle::engine
