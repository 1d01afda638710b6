// What the reference kernels share. They are plain loops over strided views: the meaning of every
// op and the oracle of the conformance tests, so they are written to be obviously right. Sums are
// kept in double.
#pragma once

#include <cmath>
#include <cstdint>

#include "call.h"
#include "elements.h"
#include "walk.h"

namespace heddle::cpu {

struct Reference {
  static constexpr const char* name = "reference";
  static std::int32_t fits(const Device&, const heddle_op_call&) { return 1; }
};

// The activations of abi/ops.h.
inline double activate(heddle_activation kind, double x) {
  constexpr double kSqrtHalf = 0.70710678118654752440;
  constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
  switch (kind) {
    case HEDDLE_ACT_RELU:
      return x > 0 ? x : (x <= 0 ? 0 : x);  // NaN stays
    case HEDDLE_ACT_SILU:
      return x / (1 + std::exp(-x));
    case HEDDLE_ACT_GELU:
      return x / 2 * (1 + std::erf(x * kSqrtHalf));
    case HEDDLE_ACT_GELU_TANH:
      return x / 2 * (1 + std::tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
    case HEDDLE_ACT_QUICK_GELU:
      return x / (1 + std::exp(-1.702 * x));
    case HEDDLE_ACT_TANH:
      return std::tanh(x);
    default:
      return x;
  }
}

// Four sums side by side: one alone would wait for the adder at every step.
inline double dot(const float* a, const float* b, std::int64_t count) {
  double sum[4] = {0, 0, 0, 0};
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (int j = 0; j < 4; ++j) sum[j] += double{a[i + j]} * b[i + j];
  for (; i < count; ++i) sum[0] += double{a[i]} * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// A piece of an operand as f32, broadcast to the whole shape where its last axis has size 1.
inline const float* load_piece(const heddle_view& view, const heddle_tensor_info& whole,
                               Piece piece, Scratch& scratch) {
  auto* values = scratch.take<float>(static_cast<std::size_t>(piece.count));
  const bool repeats = last_size(view.info) == 1;
  const std::int64_t stride = repeats ? 0 : last_stride(view.info);
  const std::int64_t offset = row_offset(view.info, whole, piece.row) + piece.begin * stride;
  load_row(view.info.dtype, element(view, offset), piece.count, stride, values);
  return values;
}

inline void store_piece(const heddle_view& view, Piece piece, const float* values) {
  const std::int64_t stride = last_stride(view.info);
  const std::int64_t offset = row_offset(view.info, view.info, piece.row) + piece.begin * stride;
  store_row(view.info.dtype, values, piece.count, stride, element(view, offset));
}

// Row number `row` of a view in the shape of `whole`, as f32.
inline const float* load_whole_row(const heddle_view& view, const heddle_tensor_info& whole,
                                   std::int64_t row, Scratch& scratch) {
  return load_piece(view, whole, {row, 0, last_size(whole)}, scratch);
}

// A vector operand as f32; nullptr when absent.
inline const float* load_vector(const heddle_view* view, Scratch& scratch) {
  if (view == nullptr) return nullptr;
  return load_piece(*view, view->info, {0, 0, last_size(view->info)}, scratch);
}

}  // namespace heddle::cpu
