// Keys and values as attention in 8 bits reads them (attention_fp8.cuh): less their mean, rounded
// by blocks, values turned, and all of it in the order of shared memory. Of a head depends on that
// head alone.
#pragma once

#include "attention_fp8.cuh"

namespace heddle::cuda {

constexpr int kMeanThreads = 1024;
template <int kWidth>
constexpr int kRoundThreads = 2 * kWidth;  // of a block

template <class Stored>
__device__ __forceinline__ const Stored* head_of(const View& view, int head, int heads) {
  return static_cast<const Stored*>(view.data) + head / heads * view.stride[0] +
         head % heads * view.stride[2];
}

// A block for each item and head, of k (y 0) or v (y 1): the mean of some rows.
template <int kWidth, class Stored>
__global__ void __launch_bounds__(kMeanThreads)
    mean_of_rows(const __grid_constant__ Fp8Operands a) {
  constexpr int kLanes = kWidth / kVectorSize, kRows = kMeanThreads / kLanes,
                kParts = kMeanThreads / kWidth;
  constexpr int kSample = static_cast<int>(blocks::kFp8Sample);
  static_assert(kSample % kRows == 0 && kRows % kParts == 0);
  __shared__ float sums[kRows][kWidth + 4];
  const View& view = blockIdx.y == 0 ? a.k : a.v;
  const int head = static_cast<int>(blockIdx.x), lane = threadIdx.x % kLanes,
            row = threadIdx.x / kLanes;
  const int count = min(kSample, a.keys);
  const Stored* from = head_of<Stored>(view, head, a.heads) + lane * kVectorSize;
  float sum[kVectorSize] = {}, x[kVectorSize];
#pragma unroll
  for (int n = 0; n < kSample / kRows; ++n) {
    const int i = row + n * kRows;
    if (i >= count) continue;
    load16<Stored>(from + std::int64_t{i} * a.keys / count * view.stride[1], x);
#pragma unroll
    for (int j = 0; j < kVectorSize; ++j) sum[j] += x[j];
  }
#pragma unroll
  for (int j = 0; j < kVectorSize; ++j) sums[row][lane * kVectorSize + j] = sum[j];
  __syncthreads();
  const int c = threadIdx.x % kWidth, part = threadIdx.x / kWidth;
  float all = 0;
#pragma unroll
  for (int i = 0; i < kRows / kParts; ++i) all += sums[part + i * kParts][c];
  __syncthreads();
  sums[part][c] = all;
  __syncthreads();
  if (threadIdx.x >= kWidth) return;
  all = 0;
#pragma unroll
  for (int i = 0; i < kParts; ++i) all += sums[i][c];
  a.means[(std::int64_t{blockIdx.y} * gridDim.x + head) * kWidth + c] =
      __fdiv_rn(all, static_cast<float>(count));
}

// A thread's part of a block of 64 rows: kPasses rows of eight channels.
template <int kWidth>
struct Rounding {
  static constexpr int kLanes = kWidth / kVectorSize, kRows = kRoundThreads<kWidth> / kLanes,
                       kPasses = kBlockKeys / kRows;
  float x[kPasses][kVectorSize];
  const int lane = threadIdx.x % kLanes, row = threadIdx.x / kLanes;

  // Of v a thread has keys of neighbouring places, to turn them by itself. Rows behind the last are
  // zeros.
  template <class Stored, bool kIsV>
  __device__ __forceinline__ void load(const Fp8Operands& a, int head) {
    const View& view = kIsV ? a.v : a.k;
    const Stored* from = head_of<Stored>(view, head, a.heads) + lane * kVectorSize;
    const float* mean =
        a.means + (std::int64_t{kIsV} * a.items * a.heads + head) * kWidth + lane * kVectorSize;
    float means[kVectorSize];
#pragma unroll
    for (int j = 0; j < kVectorSize; ++j) means[j] = __ldg(mean + j);
#pragma unroll
    for (int i = 0; i < kPasses; ++i) {
      const int key = static_cast<int>(blockIdx.x) * kBlockKeys +
                      (kIsV ? key_at_place(row * kPasses + i) : i * kRows + row);
      if (key < a.keys) {
        load16<Stored>(from + key * view.stride[1], x[i]);
#pragma unroll
        for (int j = 0; j < kVectorSize; ++j) x[i][j] -= means[j];
      } else {
#pragma unroll
        for (int j = 0; j < kVectorSize; ++j) x[i][j] = 0;
      }
    }
  }

  // Of the whole block; and every number in its units.
  __device__ __forceinline__ float round() {
    __shared__ float largest[kRoundThreads<kWidth> / 32];
    float most = 0;
#pragma unroll
    for (int i = 0; i < kPasses * kVectorSize; ++i)
      most = fmaxf(most, fabsf(x[i / kVectorSize][i % kVectorSize]));
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kRoundThreads<kWidth> / 32; ++i) most = fmaxf(most, largest[i]);
    const float scale = fmaxf(__fdiv_rn(most, blocks::kFp8Largest), blocks::kFp8LeastScale),
                by = __frcp_rn(scale);
#pragma unroll
    for (int i = 0; i < kPasses * kVectorSize; ++i) x[i / kVectorSize][i % kVectorSize] *= by;
    return scale;
  }

  __device__ __forceinline__ void write_rows(unsigned char* to) const {
#pragma unroll
    for (int i = 0; i < kPasses; ++i) {
      const int r = i * kRows + row;
      const float* v = x[i];
      *reinterpret_cast<uint2*>(to + r * kWidth + hopper::place_of<kWidth>(r, lane / 2) * 16 +
                                lane % 2 * 8) = make_uint2(hopper::to_fp8(v[0], v[1], v[2], v[3]),
                                                           hopper::to_fp8(v[4], v[5], v[6], v[7]));
    }
  }

  // Turned in shared memory, where the words of a row are exchanged so that threads meet in few
  // banks.
  __device__ __forceinline__ void write_turned(unsigned char* to) const {
    constexpr int kWords = kBlockKeys / 4;
    __shared__ unsigned words[kWidth * kWords];
#pragma unroll
    for (int j = 0; j < kVectorSize; ++j)
#pragma unroll
      for (int i = 0; i < kPasses; i += 4)
        words[(lane * kVectorSize + j) * kWords + ((row * kPasses + i) / 4 ^ lane)] =
            hopper::to_fp8(x[i][j], x[i + 1][j], x[i + 2][j], x[i + 3][j]);
    __syncthreads();
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x); i < kWidth * kWords / 4;
         i += kRoundThreads<kWidth>) {
      const int channel = i / 4, piece = hopper::place_of<kBlockKeys>(channel, i % 4),
                exchanged = channel / kVectorSize;
      const unsigned* from = words + channel * kWords;
      reinterpret_cast<uint4*>(to)[i] =
          make_uint4(from[4 * piece ^ exchanged], from[(4 * piece + 1) ^ exchanged],
                     from[(4 * piece + 2) ^ exchanged], from[(4 * piece + 3) ^ exchanged]);
    }
  }
};

// A block for each 64 keys (x) of an item and head (y), of k (z 0) or v (z 1).
template <int kWidth, class Stored>
__global__ void __launch_bounds__(kRoundThreads<kWidth>)
    round_rows(const __grid_constant__ Fp8Operands a) {
  const int head = static_cast<int>(blockIdx.y);
  const std::int64_t at = std::int64_t{head} * a.blocks + blockIdx.x;
  float* const scales = reinterpret_cast<float*>(a.scales + at);
  Rounding<kWidth> part;
  if (blockIdx.z == 0) {
    part.template load<Stored, false>(a, head);
    const float scale = part.round();
    if (threadIdx.x == 0) scales[0] = scale;
    part.write_rows(a.k8 + at * (kBlockKeys * kWidth));
  } else {
    part.template load<Stored, true>(a, head);
    const float scale = part.round();
    if (threadIdx.x == 0) scales[1] = log2f(scale), scales[2] = __frcp_rn(scale);
    part.write_turned(a.v8 + at * (kBlockKeys * kWidth));
  }
}

}  // namespace heddle::cuda
