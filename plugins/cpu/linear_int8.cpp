// linear/1 of whole numbers (plugins/blocks/linear_int8.h), on a device that is asked for them. A
// tile makes some rows of x whole numbers and multiplies them with some rows of the matrix; sums
// are exact, so that neither tiles nor instruction sets show in them.
#include "plugins/blocks/linear_int8.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "elements.h"
#include "gemm.h"
#include "kernels.h"
#include "op_check.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kInt8Rows = 16, kInt8Columns = 256, kInt8Stretch = 2048;

// Each group of 256 numbers times the rotation.
void rotate_groups(float* row, std::int64_t length) {
  for (float *at = row, *end = row + length; at != end; at += blocks::kInt8Rotated) {
    for (std::int64_t step = 1; step < blocks::kInt8Rotated; step *= 4)
      for (std::int64_t first = 0; first < blocks::kInt8Rotated; first += 4 * step)
        for (std::int64_t i = first; i < first + step; ++i)
          blocks::rotate_four(at[i], at[i + step], at[i + 2 * step], at[i + 3 * step]);
    for (std::int64_t i = 0; i < blocks::kInt8Rotated; ++i) at[i] /= blocks::kInt8Root;
  }
}

// Gives the scale back.
float round_to_int8(const float* row, std::int64_t length, std::int16_t* to) {
  float most = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    if (std::isnan(row[i])) most = std::numeric_limits<float>::quiet_NaN();
    if (std::fabs(row[i]) > most) most = std::fabs(row[i]);
  }
  float scale = most / blocks::kInt8Largest;
  if (scale < blocks::kInt8LeastScale) scale = blocks::kInt8LeastScale;
  const float by = 1 / scale;
  for (std::int64_t i = 0; i < length; ++i) {
    const float value = std::nearbyint(row[i] * by);
    to[i] = static_cast<std::int16_t>(value > -blocks::kInt8Largest  // so is NaN
                                          ? std::min(value, blocks::kInt8Largest)
                                          : -blocks::kInt8Largest);
  }
  return scale;
}

struct Int8Linear {
  static constexpr const char* op = HEDDLE_OP_LINEAR;
  static constexpr const char* name = "i8";
  static void check(const heddle_op_call& call) { check_linear(call); }

  static std::int32_t fits(const Device&, const heddle_op_call& call) {
    const heddle_view* weight = device::operand(call, 1);
    return weight != nullptr && weight->info.layout == kMatrixInt8 ? 30 : 0;
  }

  static void run(const Call& call) {
    const VectorKernels& vector = call.device().vector();
    const heddle_view &x = call.in(0), &weight = call.in(1);
    const std::int64_t m = row_count(call.out().info), n = weight.info.shape[0],
                       k = weight.info.shape[1];
    const auto* const numbers = static_cast<const std::int8_t*>(weight.data);
    const auto* const scales =
        reinterpret_cast<const float*>(numbers + int8_scales_offset(weight.info));
    const RowPlaces places(x);
    const Finish finish(call, load_bias(call, call.maybe(2), n),
                        call.attrs<heddle_activation_attrs>().kind, call.maybe(3));
    const std::int64_t down = (m + kInt8Rows - 1) / kInt8Rows,
                       across = (n + kInt8Columns - 1) / kInt8Columns;
    call.parallel_for(down * across, [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t row = tile % down * kInt8Rows, column = tile / down * kInt8Columns;
      const std::int64_t rows = std::min(kInt8Rows, m - row),
                         columns = std::min(kInt8Columns, n - column);
      auto* const left = scratch.take<std::int16_t>(static_cast<std::size_t>(rows * k));
      auto* const right =
          scratch.take<std::int16_t>(static_cast<std::size_t>(std::min(k, kInt8Stretch)));
      auto* const wide = scratch.take<float>(static_cast<std::size_t>(k));
      auto* const sums = scratch.take<std::int32_t>(static_cast<std::size_t>(rows * columns));
      auto* const results = scratch.take<float>(static_cast<std::size_t>(rows * columns));
      float row_scales[kInt8Rows];
      for (std::int64_t r = 0; r < rows; ++r) {
        load_row(x.info.dtype, places.at(row + r, 0), k, last_stride(x.info), wide);
        if (weight.info.dtype == HEDDLE_I8_ROTATED) rotate_groups(wide, k);
        row_scales[r] = round_to_int8(wide, k, left + r * k);
      }
      std::fill(sums, sums + rows * columns, 0);
      for (std::int64_t k0 = 0; k0 < k; k0 += kInt8Stretch) {
        call.check_wanted();
        const std::int64_t length = std::min(kInt8Stretch, k - k0);
        for (std::int64_t c = 0; c < columns; ++c) {
          vector.widen_whole(numbers + (column + c) * k + k0, length, right);
          for (std::int64_t r = 0; r < rows; ++r)
            sums[r * columns + c] += vector.multiply_whole(left + r * k + k0, right, length);
        }
      }
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c)
          results[r * columns + c] =
              static_cast<float>(sums[r * columns + c]) * (row_scales[r] * scales[column + c]);
      finish.write(results, columns, row, rows, column, columns, scratch);
    });
  }
};

}  // namespace

constexpr heddle_kernel kInt8Linear = kernel_table<Int8Linear>();

}  // namespace heddle::cpu
