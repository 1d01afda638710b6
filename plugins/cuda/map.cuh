// One function over the elements of up to four operands, which broadcast to the output: a thread
// makes eight neighbours of one row. All operands are read before anything is written, so that an
// output may lie exactly on an input.
#pragma once

#include <algorithm>

#include "call.h"
#include "view.cuh"

namespace heddle::cuda::map {

constexpr int kThreads = 256;
constexpr int kMaxOperands = 4;

struct Operands {
  View in[kMaxOperands];
  View out;
  Space space;
};

// out = f(the operands' values), where f(values) gets one float of each operand.
template <int kCount, class F>
__global__ void __launch_bounds__(kThreads) apply(const __grid_constant__ Operands operands, F f) {
  const std::int64_t width = operands.space.shape[operands.space.rank - 1];
  const std::int64_t pieces = (width + kVectorSize - 1) / kVectorSize,
                     rows = width == 0 ? 0 : operands.space.count / width;
  for (std::int64_t item = blockIdx.x * std::int64_t{kThreads} + threadIdx.x; item < rows * pieces;
       item += std::int64_t{gridDim.x} * kThreads) {
    // Dividing numbers of 64 bits takes longer than all the rest.
    const std::int64_t row = rows * pieces <= 0xffffffffll ? static_cast<std::uint32_t>(item) /
                                                                 static_cast<std::uint32_t>(pieces)
                                                           : item / pieces;
    const std::int64_t column = (item - row * pieces) * kVectorSize;
    const int count = static_cast<int>(min(std::int64_t{kVectorSize}, width - column)),
              axes = operands.space.rank - 1;
    float values[kCount > 0 ? kCount : 1][kVectorSize];
#pragma unroll
    for (int n = 0; n < kCount; ++n) {
      const View& view = operands.in[n];
      const std::int64_t at = offset_of(view, operands.space, row, axes);
      if (view.stride[axes] == 0) {
        const float all = load(view.data, view.dtype, at);
#pragma unroll
        for (int i = 0; i < kVectorSize; ++i) values[n][i] = all;
      } else {
        load_vector(view.data, view.dtype, at + column, count, values[n]);
      }
    }
    float result[kVectorSize];
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) {
      float one[kCount > 0 ? kCount : 1];
#pragma unroll
      for (int n = 0; n < kCount; ++n) one[n] = values[n][i];
      result[i] = f(one);
    }
    store_vector(operands.out.data, operands.out.dtype,
                 offset_of(operands.out, operands.space, row, axes) + column, count, result);
  }
}

template <int kCount, class F>
void launch(Stream& stream, const heddle_op_call& call, F f) {
  const heddle_tensor_info& whole = out(call).info;
  Operands operands;
  operands.space = space_of(whole);
  if (operands.space.count == 0) return;
  for (int n = 0; n < kCount; ++n) operands.in[n] = view_of(call.in[n], whole);
  operands.out = view_of(call.out[0], whole);
  collapse(operands.space, 0,
           {&operands.in[0], &operands.in[1], &operands.in[2], &operands.in[3], &operands.out});
  const std::int64_t width = operands.space.shape[operands.space.rank - 1];
  const std::int64_t items =
      operands.space.count / width * ((width + kVectorSize - 1) / kVectorSize);
  const std::int64_t most = std::int64_t{stream.device().multiprocessors()} * 32;
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>((items + kThreads - 1) / kThreads, most));
  apply<kCount><<<blocks, kThreads, 0, stream.raw()>>>(operands, f);
}

}  // namespace heddle::cuda::map
