#include "scaled_fp8.h"

#include <cuda_fp8.h>

#include "number.cuh"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr float kLargest = 448, kLeastScale = 0x1p-100f;

// How eight neighbours of a row are read.
struct Operand {
  const void* data;
  std::int32_t dtype;
  __device__ void get(std::int64_t at, int count, float (&to)[kVectorSize]) const {
    load_vector(data, dtype, at, count, to);
  }
};
struct Stored {
  const void* data;
  std::int32_t dtype;
  float scale;
  __device__ void get(std::int64_t at, int count, float (&to)[kVectorSize]) const {
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i)
      to[i] = i < count ? __fmul_rn(to_float(load_number(data, dtype, at + i)), scale) : 0.0f;
  }
};

// A block for each row, which it reads twice: the second time it lies in a cache.
template <class Source>
__global__ void __launch_bounds__(kThreads)
    fp8_rows(Source source, std::int64_t step, std::int64_t columns, unsigned char* out,
             float* scales) {
  const std::int64_t row = blockIdx.x, begin = row * step;
  float most = 0;
  for (std::int64_t c = threadIdx.x * kVectorSize; c < columns; c += kThreads * kVectorSize) {
    float values[kVectorSize];
    source.get(begin + c, static_cast<int>(min(std::int64_t{kVectorSize}, columns - c)), values);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) most = fmaxf(most, fabsf(values[i]));
  }
  __shared__ float largest[kWarps];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, distance));
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kWarps; ++i) most = fmaxf(most, largest[i]);

  const float scale = fmaxf(__fdiv_rn(most, kLargest), kLeastScale), by = __frcp_rn(scale);
  if (threadIdx.x == 0) scales[row] = scale;
  unsigned char* const to = out + row * columns;
  for (std::int64_t c = threadIdx.x * kVectorSize; c < columns; c += kThreads * kVectorSize) {
    const int count = static_cast<int>(min(std::int64_t{kVectorSize}, columns - c));
    float values[kVectorSize];
    source.get(begin + c, count, values);
    union {
      __nv_fp8x2_storage_t pairs[kVectorSize / 2];
      unsigned char each[kVectorSize];
      uint2 all;
    } to_fp8;
#pragma unroll
    for (int i = 0; i < kVectorSize / 2; ++i)
      to_fp8.pairs[i] = __nv_cvt_float2_to_fp8x2(
          make_float2(__fmul_rn(values[2 * i], by), __fmul_rn(values[2 * i + 1], by)),
          __NV_SATFINITE, __NV_E4M3);
    if (count == kVectorSize && reinterpret_cast<std::uintptr_t>(to + c) % sizeof to_fp8.all == 0) {
      *reinterpret_cast<uint2*>(to + c) = to_fp8.all;
    } else {
#pragma unroll
      for (int i = 0; i < kVectorSize; ++i)
        if (i < count) to[c + i] = to_fp8.each[i];
    }
  }
}

template <class Source>
void launch(Stream& stream, const Fp8Rows& rows, Source source) {
  if (rows.rows == 0) return;
  fp8_rows<<<static_cast<unsigned>(rows.rows), kThreads, 0, stream.raw()>>>(
      source, rows.step, rows.columns, static_cast<unsigned char*>(rows.to), rows.scales);
}

}  // namespace

void to_fp8(Stream& stream, const Fp8Rows& rows) {
  launch(stream, rows, Operand{rows.from, rows.dtype});
}

void store_as_fp8(Stream& stream, const Fp8Rows& rows, float scale) {
  launch(stream, rows, Stored{rows.from, rows.dtype, scale});
}

}  // namespace heddle::cuda
