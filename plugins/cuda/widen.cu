#include "heddle/device.hpp"
#include "layouts.h"
#include "stored.cuh"
#include "widen.h"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 256, kEach = 4;

// A thread makes four neighbours, which are of one row and, where there are blocks, of one block.
__global__ void __launch_bounds__(kThreads)
    widen_all(const void* from, std::int32_t from_dtype, const float* scales, std::int64_t count,
              std::int64_t columns, void* out, std::int32_t dtype) {
  const std::int64_t i = (blockIdx.x * std::int64_t{kThreads} + threadIdx.x) * kEach;
  if (i >= count) return;
  const float scale = scales != nullptr ? scales[i / columns] : 1.0f;
  float values[kEach];
#pragma unroll
  for (int n = 0; n < kEach; ++n) values[n] = load_stored(from, from_dtype, i + n) * scale;
#pragma unroll
  for (int n = 0; n < kEach; ++n) store(out, dtype, i + n, values[n]);
}

constexpr int kRotated = 256, kRotatedThreads = kRotated / kEach;  // of a block

// Exchanges numbers over the threads of a block, `step` threads apart: one digit of the rotation.
__device__ void rotate_digit(float (&mine)[kEach], float* shared, int thread, int step) {
#pragma unroll
  for (int n = 0; n < kEach; ++n) shared[thread * kEach + n] = mine[n];
  __syncthreads();
  const int digit = thread / step % 4, first = thread - digit * step;
#pragma unroll
  for (int n = 0; n < kEach; ++n) {
    float sum = 0;
#pragma unroll
    for (int d = 0; d < 4; ++d) {
      const float other = shared[(first + d * step) * kEach + n];
      sum += (d ^ digit) == 3 ? -other : other;
    }
    mine[n] = sum;
  }
  __syncthreads();
}

// Where blocks lie, and their scales: of rows that have one each, or, where there are none of
// these, of blocks that begin with theirs.
struct RotatedBlocks {
  const unsigned char* from;
  std::int32_t dtype;
  std::int64_t bytes, count;  // of a block; of them
  const float* scales;
  std::int64_t in_row;  // blocks
};

// A block of numbers by 64 threads, each of which has four neighbours. Sums are whole numbers, so
// their order says nothing.
__global__ void __launch_bounds__(kThreads)
    widen_rotated(const __grid_constant__ RotatedBlocks blocks, void* out, std::int32_t dtype) {
  __shared__ float numbers[kThreads / kRotatedThreads][kRotated];
  const int part = threadIdx.x / kRotatedThreads, thread = threadIdx.x % kRotatedThreads;
  const std::int64_t number =
      blockIdx.x * std::int64_t{kThreads / kRotatedThreads} + threadIdx.x / kRotatedThreads;
  const bool here = number < blocks.count;
  const unsigned char* const block = blocks.from + (here ? number : 0) * blocks.bytes;
  float mine[kEach], turned[kEach];
#pragma unroll
  for (int n = 0; n < kEach; ++n) mine[n] = turned_number(blocks.dtype, block, thread * kEach + n);
  const float all = (mine[0] + mine[1]) + (mine[2] + mine[3]);
#pragma unroll
  for (int n = 0; n < kEach; ++n) turned[n] = all - 2 * mine[kEach - 1 - n];
  for (int step = 1; step < kRotatedThreads; step *= 4)
    rotate_digit(turned, numbers[part], thread, step);
  if (!here) return;
  const float scale =
      (blocks.scales != nullptr ? blocks.scales[number / blocks.in_row] : float_at(block)) /
      kRotationRoot;
#pragma unroll
  for (int n = 0; n < kEach; ++n)
    store(out, dtype, number * kRotated + thread * kEach + n, turned[n] * scale);
}

}  // namespace

bool is_widened(const heddle_tensor_info& weight) {
  return device::is_block_format(weight.dtype) || device::is_f8(weight.dtype);
}

const float* scales_of(const heddle_view& weight) {
  if (!has_scales(weight.info.layout) && weight.info.layout != kInt8Rows) return nullptr;
  return reinterpret_cast<const float*>(static_cast<const char*>(weight.data) +
                                        scales_offset(weight.info.shape[0], weight.info.shape[1]));
}

void widen(Stream& stream, const heddle_view& weight, heddle_dtype to, void* out) {
  const std::int64_t count = device::element_count(weight.info), columns = weight.info.shape[1];
  const bool is_in_rows = weight.info.layout == kInt8Rows;
  if (is_rotated(weight.info.dtype)) {
    const auto* const from = static_cast<const unsigned char*>(weight.data);
    // What reads a block passes over its scale, which rows have behind them.
    const RotatedBlocks blocks{is_in_rows ? from - sizeof(float) : from,
                               weight.info.dtype,
                               is_in_rows ? kRotated : device::block_bytes(weight.info.dtype),
                               count / kRotated,
                               scales_of(weight),
                               columns / kRotated};
    widen_rotated<<<blocks_for(blocks.count, std::int64_t{kThreads / kRotatedThreads}), kThreads, 0,
                    stream.raw()>>>(blocks, out, to);
    return;
  }
  widen_all<<<blocks_for(count, std::int64_t{kThreads} * kEach), kThreads, 0, stream.raw()>>>(
      weight.data, is_in_rows ? HEDDLE_I8 : weight.info.dtype, scales_of(weight), count, columns,
      out, to);
}

}  // namespace heddle::cuda
