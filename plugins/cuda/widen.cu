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

}  // namespace

bool is_widened(const heddle_tensor_info& weight) {
  return device::is_block_format(weight.dtype) || device::is_f8(weight.dtype);
}

const float* scales_of(const heddle_view& weight) {
  if (!has_scales(weight.info.layout)) return nullptr;
  return reinterpret_cast<const float*>(static_cast<const char*>(weight.data) +
                                        scales_offset(weight.info.shape[0], weight.info.shape[1]));
}

void widen(Stream& stream, const heddle_view& weight, heddle_dtype to, void* out) {
  const std::int64_t count = device::element_count(weight.info);
  widen_all<<<blocks_for(count, std::int64_t{kThreads} * kEach), kThreads, 0, stream.raw()>>>(
      weight.data, weight.info.dtype, scales_of(weight), count, weight.info.shape[1], out, to);
}

}  // namespace heddle::cuda
