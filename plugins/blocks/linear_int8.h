// Products of whole numbers: what devices do whose option "linear_dtype" is "int8" with the
// matrices of HEDDLE_I8_SCALED and HEDDLE_I8_ROTATED, as ComfyUI does with files of
// int8_tensorwise wherever a card can (comfy-kitchen's int8_linear). All else is widened as ever.
//
//   x'       = x, of a rotated matrix times the same rotation, 256 numbers at a time
//   rounded  = x' * (1 / s) to the nearest whole number, ties to even; s = max(|x'|) / 127 of the
//              row, at least 1e-30
//   out      = f(sum of rounded * stored * (s * scale of the matrix's row) + bias) + residual
//
// The sums are exact, all else is f32: devices differ in what the activation f rounds, and in the
// bias, which some keep in the compute type (HEDDLE_USE_BIAS). A row in which one number is none
// becomes NaN as a whole. A matrix's row whose blocks have unlike scales is rounded anew, to the
// largest of them; files have one for a row.
#pragma once

#include <cmath>
#include <cstdint>

#include "heddle/device.hpp"

namespace heddle::blocks {

constexpr std::int64_t kInt8Rotated = 256;      // numbers that are rotated together
constexpr float kInt8Root = 16;                 // the root of that, which a sum is divided by
constexpr std::int64_t kInt8Longest = 1 << 17;  // times 127 * 128 is below 2^31
constexpr float kInt8Largest = 127, kInt8LeastScale = 1e-30f;
// Behind the model's name: what such a device computes is not what others of the model compute, and
// is kept, measured and placed apart.
constexpr const char* kInt8ProductsModel = ", products in int8";

// "default" or "int8"; throws for anything else. Returns whether it is the latter.
inline bool asks_for_int8_products(const device::Options& options) {
  const std::string dtype = options.text("linear_dtype", "default");
  if (dtype != "default" && dtype != "int8")
    device::fail(HEDDLE_INVALID_ARGUMENT, "option 'linear_dtype' is '", dtype,
                 "', has to be default or int8");
  return dtype == "int8";
}

// Whether a matrix is one for them.
inline bool is_int8_matrix(std::int32_t use, const heddle_tensor_info& info) {
  return use == HEDDLE_USE_LINEAR && info.rank == 2 && info.shape[0] > 0 && info.shape[1] > 0 &&
         (info.dtype == HEDDLE_I8_SCALED || info.dtype == HEDDLE_I8_ROTATED) &&
         info.shape[1] <= kInt8Longest;
}

#if defined(__CUDACC__)
#define HEDDLE_ON_BOTH_SIDES __host__ __device__
#else
#define HEDDLE_ON_BOTH_SIDES
#endif

// Four numbers times [1 1 1 -1; 1 1 -1 1; 1 -1 1 1; -1 1 1 1], in this order of additions.
HEDDLE_ON_BOTH_SIDES inline void rotate_four(float& a, float& b, float& c, float& d) {
  const float all = (a + b) + (c + d), to_a = all - 2 * d, to_b = all - 2 * c, to_c = all - 2 * b;
  d = all - 2 * a, a = to_a, b = to_b, c = to_c;
}

}  // namespace heddle::blocks
