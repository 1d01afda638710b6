// What the kernels of linear/1 by cuBLASLt have in common: where rows lie, which epilogue the
// library has, and our own pass over f32 sums where it has none. Functions of a call; any thread.
#pragma once

#include "call.h"
#include "linear_rows.h"
#include "map.cuh"
#include "matmul.h"

namespace heddle::cuda {

inline std::size_t aligned(std::size_t bytes) {
  constexpr std::size_t kAligned = 256;
  return (bytes + kAligned - 1) / kAligned * kAligned;
}

// The leading axes of several operands as such; false: they are not.
inline bool even_rows(const heddle_op_call& call, Rows& x, Rows& out, Rows& residual) {
  const heddle_tensor_info& whole = call.out[0]->info;
  heddle_tensor_info leading = whole;
  leading.rank = whole.rank - 1;
  View views[3] = {view_of(call.in[0], leading), view_of(call.out[0], leading),
                   view_of(device::operand(call, 3), leading)};
  Space space = space_of(leading);
  collapse(space, 0, {&views[0], &views[1], &views[2]});
  if (space.rank == 2 && space.shape[1] == 1) space.rank = 1;
  if (space.rank > 2) return false;
  const int rows = space.rank - 1;
  Rows* const to[3] = {&x, &out, &residual};
  for (int i = 0; i < 3; ++i)
    *to[i] = {space.rank == 2 ? space.shape[0] : 1, space.shape[rows], views[i].stride[rows],
              space.rank == 2 ? views[i].stride[0] : 0};
  return true;
}

// Whether so many elements are a multiple of 16 bytes.
inline bool divides(std::int64_t elements, heddle_dtype dtype) {
  return elements * std::int64_t(device::dtype_bytes(dtype)) % 16 == 0;
}

// Whether the library can write, or add, rows of n elements that lie so.
inline bool lies_evenly(const Rows& rows, heddle_dtype dtype, std::int64_t n) {
  return divides(rows.step, dtype) && divides(rows.jump, dtype) &&
         (rows.rows == 1 || rows.step >= n);
}

inline bool has_epilogue(heddle_activation kind, bool has_residual) {
  return kind == HEDDLE_ACT_NONE ||
         ((kind == HEDDLE_ACT_RELU || kind == HEDDLE_ACT_GELU_TANH) && !has_residual);
}

// REQUIRES: has_epilogue().
inline cublasLtEpilogue_t epilogue_of(heddle_activation kind, bool biased) {
  switch (kind) {
    case HEDDLE_ACT_RELU:
      return biased ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case HEDDLE_ACT_GELU_TANH:
      return biased ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default:
      return biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

struct Same {
  __device__ float operator()(const float* x) const { return x[0]; }
};
// What the library's epilogue does not: f(sum + bias) + residual.
struct Finish {
  std::int32_t kind;
  bool biased, added;
  __device__ float operator()(const float* x) const {
    const float y = activate(kind, biased ? x[0] + x[1] : x[0]);
    return added ? y + x[2] : y;
  }
};

// A row-major tensor in the workspace.
inline heddle_view scratch(heddle_dtype dtype, const heddle_tensor_info& shape, char* at) {
  return {device::row_major(dtype, shape.shape, shape.rank), at};
}

inline heddle_op_call call_of(const heddle_view* const* in, std::uint32_t count,
                              const heddle_view* const* out) {
  return {.size = sizeof(heddle_op_call),
          .op = "",
          .in_count = count,
          .out_count = 1,
          .in = in,
          .out = out,
          .attrs = nullptr,
          .attrs_size = 0};
}

inline void cast(Stream& stream, const heddle_view& from, const heddle_view& to) {
  const heddle_view *in[] = {&from}, *out[] = {&to};
  map::launch<1>(stream, call_of(in, 1, out), Same{});
}

// The bias as the product takes it: where it lies, or cast to `at`.
inline const void* bias_of(Stream& stream, const heddle_view& bias, const Gemm& gemm, char* at) {
  const heddle_dtype dtype = Matmul::bias_dtype(gemm);
  if (bias.info.dtype == dtype && lies_at_16(bias.data)) return bias.data;
  cast(stream, bias, scratch(dtype, bias.info, at));
  return at;
}

// The bias in the last of as many axes as the output has.
inline heddle_view spread(const heddle_view& bias, std::uint32_t rank) {
  heddle_view view = bias;
  view.info.rank = rank;
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    view.info.shape[axis] = axis + 1 == rank ? bias.info.shape[0] : 1;
    view.info.stride[axis] = axis + 1 == rank ? bias.info.stride[0] : 0;
  }
  return view;
}

// Makes the output of f32 sums, which are row-major.
inline void finish(Stream& stream, const heddle_op_call& call, char* sums_at) {
  const heddle_view& result = out(call);
  const heddle_view *bias = device::operand(call, 2), *residual = device::operand(call, 3);
  const heddle_view sums = scratch(HEDDLE_F32, result.info, sums_at);
  heddle_view wide;
  if (bias != nullptr) wide = spread(*bias, result.info.rank);
  const heddle_view *ins[] = {&sums, bias != nullptr ? &wide : &sums,
                              residual != nullptr ? residual : &sums},
                    *outs[] = {&result};
  map::launch<3>(
      stream, call_of(ins, 3, outs),
      Finish{attrs<heddle_activation_attrs>(call).kind, bias != nullptr, residual != nullptr});
}

}  // namespace heddle::cuda
