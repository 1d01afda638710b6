// Rows of numbers as whole ones, each row with a scale of its own (plugins/blocks/linear_int8.h),
// and what becomes of their sums. A row's bytes depend on that row alone. Enqueues only.
#pragma once

#include <cstdint>

#include "heddle/abi/device.h"
#include "heddle/abi/ops.h"
#include "linear_rows.h"
#include "stream.h"

namespace heddle::cuda {

// Whether the device multiplies this matrix as whole numbers: it is asked to, has the library, and
// the library the product. Depends on the settings and the arguments.
bool multiplies_int8(const Device& device, std::int32_t use, const heddle_tensor_info& weight);

// Rows of x: a batch of evenly spaced ones, whose numbers are f32, f16 or bf16.
struct Int8Rows {
  const void* from;
  heddle_dtype dtype;
  Rows x;
  std::int64_t columns;
  bool is_rotated;      // they are, before they are rounded
  std::int64_t padded;  // rows of `to`, at least those of x; zeros behind them
  void* to;             // padded * columns bytes
  float* scales;        // one of each row of x
};
void to_int8(Stream& stream, const Int8Rows& rows);

// Rows of a file's blocks, I8_SCALED or I8_ROTATED, without their scales, and the scale of each
// row.
void store_as_int8(Stream& stream, const void* blocks, std::int64_t rows, std::int64_t columns,
                   void* to, float* scales);

// Sums of whole numbers, row-major, of the rows [first, first + rows) of an output.
struct Int8Sums {
  const std::int32_t* sums;
  std::int64_t first, rows, columns;
  const float *x_scales, *weight_scales;
  const heddle_view *bias, *residual, *out;  // bias, residual: nullptr: none
  Rows residual_rows, out_rows;
  heddle_activation activation;
};
// Writes f(sum * (scale of x * scale of the matrix) + bias) + residual. REQUIRES: columns in
// multiples of 8, a dense bias.
void finish_int8(Stream& stream, const Int8Sums& sums);

}  // namespace heddle::cuda
