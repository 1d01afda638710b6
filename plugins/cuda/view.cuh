// Views on the device: what a kernel is given of an operand, how its elements are read as f32 and
// written from f32 (rounded once to nearest even), and how operands are brought to few axes before
// a launch. Element types are looked at when the kernel runs: all threads of a warp go the same
// way.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "heddle/device.hpp"

namespace heddle::cuda {

constexpr int kAxes = HEDDLE_MAX_RANK;

struct View {
  void* data = nullptr;
  std::int32_t dtype = 0, rank = 0;
  std::int64_t stride[kAxes] = {};  // elements; 0 where it broadcasts
};

// The common shape of the operands of a launch.
struct Space {
  std::int32_t rank = 0;
  std::int64_t shape[kAxes] = {};
  std::int64_t count = 1;
};

// ---- elements ----

__host__ __device__ inline int element_bytes(std::int32_t dtype) {
  return dtype == HEDDLE_F32 ? 4 : 2;
}

__device__ inline float load(const void* data, std::int32_t dtype, std::int64_t i) {
  if (dtype == HEDDLE_F32) return static_cast<const float*>(data)[i];
  if (dtype == HEDDLE_BF16) return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
  return __half2float(static_cast<const __half*>(data)[i]);
}

__device__ inline void store(void* data, std::int32_t dtype, std::int64_t i, float value) {
  if (dtype == HEDDLE_F32)
    static_cast<float*>(data)[i] = value;
  else if (dtype == HEDDLE_BF16)
    static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(value);
  else
    static_cast<__half*>(data)[i] = __float2half_rn(value);
}

// A vector: eight neighbours of one thread; by 16-byte accesses where they lie so.
constexpr int kVectorSize = 8;

template <class Stored>
__device__ inline void load16(const void* from, float (&to)[kVectorSize]) {
  const uint4 raw = *static_cast<const uint4*>(from);
  const auto* values = reinterpret_cast<const Stored*>(&raw);
#pragma unroll
  for (int i = 0; i < kVectorSize; ++i) to[i] = static_cast<float>(values[i]);
}

template <class Stored>
__device__ inline void store16(void* to, const float (&from)[kVectorSize]) {
  uint4 raw;
  auto* values = reinterpret_cast<Stored*>(&raw);
#pragma unroll
  for (int i = 0; i < kVectorSize; ++i) values[i] = Stored(from[i]);
  *static_cast<uint4*>(to) = raw;
}

__device__ inline bool is_aligned(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) % 16 == 0;
}

__device__ inline void load_vector(const void* data, std::int32_t dtype, std::int64_t at, int count,
                                   float (&to)[kVectorSize]) {
  const char* from = static_cast<const char*>(data) + at * element_bytes(dtype);
  if (count == kVectorSize && is_aligned(from)) {
    if (dtype == HEDDLE_F32) {
      const float4 a = *reinterpret_cast<const float4*>(from),
                   b = *reinterpret_cast<const float4*>(from + 16);
      to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w, to[4] = b.x, to[5] = b.y, to[6] = b.z,
      to[7] = b.w;
    } else if (dtype == HEDDLE_BF16) {
      load16<__nv_bfloat16>(from, to);
    } else {
      load16<__half>(from, to);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kVectorSize; ++i) to[i] = i < count ? load(data, dtype, at + i) : 0.0f;
}

__device__ inline void store_vector(void* data, std::int32_t dtype, std::int64_t at, int count,
                                    const float (&from)[kVectorSize]) {
  char* to = static_cast<char*>(data) + at * element_bytes(dtype);
  if (count == kVectorSize && is_aligned(to)) {
    if (dtype == HEDDLE_F32) {
      *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
      *reinterpret_cast<float4*>(to + 16) = make_float4(from[4], from[5], from[6], from[7]);
    } else if (dtype == HEDDLE_BF16) {
      store16<__nv_bfloat16>(to, from);
    } else {
      store16<__half>(to, from);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kVectorSize; ++i)
    if (i < count) store(data, dtype, at + i, from[i]);
}

// How the eights of an operand lie: each at a whole 16 bytes and of that type, so that it is loaded
// without a question, or otherwise.
enum class Lies { kAnyhow, kBf16, kF16, kF32 };

// Eight neighbours between loading and use. A thread that wants several in flight loads all of them
// before it uses the first; where they do not lie anyhow, loads need not wait for one another.
// Where nothing is to be loaded there are zeros.
template <Lies kLies>
struct Piece {
  uint4 raw;
  __device__ void fetch(const View& view, std::int64_t at, bool inside) {
    raw = inside ? *reinterpret_cast<const uint4*>(static_cast<const char*>(view.data) + at * 2)
                 : make_uint4(0, 0, 0, 0);
  }
  __device__ void get(float (&to)[kVectorSize]) const {
    using Stored = std::conditional_t<kLies == Lies::kBf16, __nv_bfloat16, __half>;
    const auto* values = reinterpret_cast<const Stored*>(&raw);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) to[i] = static_cast<float>(values[i]);
  }
  __device__ static void put(const View& view, std::int64_t at, const float (&from)[kVectorSize]) {
    using Stored = std::conditional_t<kLies == Lies::kBf16, __nv_bfloat16, __half>;
    store16<Stored>(static_cast<char*>(view.data) + at * 2, from);
  }
};

template <>
struct Piece<Lies::kAnyhow> {
  float values[kVectorSize];
  __device__ void fetch(const View& view, std::int64_t at, bool inside) {
    if (inside) load_vector(view.data, view.dtype, at, kVectorSize, values);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) values[i] = inside ? values[i] : 0;
  }
  __device__ void get(float (&to)[kVectorSize]) const {
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) to[i] = values[i];
  }
  __device__ static void put(const View& view, std::int64_t at, const float (&from)[kVectorSize]) {
    store_vector(view.data, view.dtype, at, kVectorSize, from);
  }
};

template <>
struct Piece<Lies::kF32> {
  float4 raw[2];
  __device__ void fetch(const View& view, std::int64_t at, bool inside) {
    const auto* from = reinterpret_cast<const float4*>(static_cast<const float*>(view.data) + at);
    raw[0] = inside ? from[0] : make_float4(0, 0, 0, 0);
    raw[1] = inside ? from[1] : make_float4(0, 0, 0, 0);
  }
  __device__ void get(float (&to)[kVectorSize]) const {
    to[0] = raw[0].x, to[1] = raw[0].y, to[2] = raw[0].z, to[3] = raw[0].w;
    to[4] = raw[1].x, to[5] = raw[1].y, to[6] = raw[1].z, to[7] = raw[1].w;
  }
  __device__ static void put(const View& view, std::int64_t at, const float (&from)[kVectorSize]) {
    auto* const to = reinterpret_cast<float4*>(static_cast<float*>(view.data) + at);
    to[0] = make_float4(from[0], from[1], from[2], from[3]);
    to[1] = make_float4(from[4], from[5], from[6], from[7]);
  }
};

inline Lies how_lies(const View& view) {
  bool wide = reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
  for (int axis = 0; axis + 1 < view.rank; ++axis)
    wide = wide && view.stride[axis] % kVectorSize == 0;
  if (!wide) return Lies::kAnyhow;
  return view.dtype == HEDDLE_F32    ? Lies::kF32
         : view.dtype == HEDDLE_BF16 ? Lies::kBf16
                                     : Lies::kF16;
}

// ---- places ----

// Elements from the first one to number `index` of a space, along its first `axes` axes.
__device__ inline std::int64_t offset_of(const View& view, const Space& space, std::int64_t index,
                                         int axes) {
  std::int64_t offset = 0;
  if (space.count >> 32 == 0) {  // dividing 64 bits takes several times as long
    auto small = static_cast<std::uint32_t>(index);
    for (int axis = axes - 1; axis > 0; --axis) {
      const auto size = static_cast<std::uint32_t>(space.shape[axis]);
      const std::uint32_t rest = small / size;
      offset += (small - rest * size) * view.stride[axis];
      small = rest;
    }
    return axes > 0 ? offset + small * view.stride[0] : 0;
  }
  for (int axis = axes - 1; axis > 0; --axis) {
    const std::int64_t rest = index / space.shape[axis];
    offset += (index - rest * space.shape[axis]) * view.stride[axis];
    index = rest;
  }
  return axes > 0 ? offset + index * view.stride[0] : 0;
}

inline View view_of(const heddle_view* from, const heddle_tensor_info& whole) {
  View view;
  if (from == nullptr) return view;
  view.data = from->data;
  view.dtype = from->info.dtype;
  view.rank = static_cast<std::int32_t>(whole.rank);
  for (std::uint32_t axis = 0; axis < whole.rank; ++axis)
    view.stride[axis] = from->info.shape[axis] == 1 ? 0 : from->info.stride[axis];
  return view;
}

inline Space space_of(const heddle_tensor_info& whole) {
  Space space;
  space.rank = static_cast<std::int32_t>(whole.rank);
  for (std::uint32_t axis = 0; axis < whole.rank; ++axis) {
    space.shape[axis] = whole.shape[axis];
    space.count *= whole.shape[axis];
  }
  return space;
}

// Leaves out axes of one element and joins those that are one stretch in every operand. The last
// `kept` axes stay what they are (kernels that work on rows keep 1); the last one is never left
// out, because elements are neighbours along it only. Afterwards there is at least one axis.
inline void collapse(Space& space, int kept, std::initializer_list<View*> views) {
  Space joined;
  joined.count = space.count;
  std::int64_t strides[8][kAxes] = {};
  int rank = 0;
  const int movable = space.rank - kept;
  for (int axis = 0; axis < space.rank; ++axis) {
    const bool last = axis >= movable;
    if (!last && axis + 1 < space.rank && space.shape[axis] == 1) continue;
    bool joins = !last && rank > 0;
    int v = 0;
    for (const View* view : views) {
      if (joins) joins = strides[v][rank - 1] == view->stride[axis] * space.shape[axis];
      ++v;
    }
    if (!joins) joined.shape[rank++] = 1;
    joined.shape[rank - 1] *= space.shape[axis];
    v = 0;
    for (const View* view : views) strides[v++][rank - 1] = view->stride[axis];
  }
  if (rank == 0) joined.shape[rank++] = 1;
  joined.rank = rank;
  int v = 0;
  for (View* view : views) {
    for (int axis = 0; axis < kAxes; ++axis)
      view->stride[axis] = axis < rank ? strides[v][axis] : 0;
    view->rank = rank;
    ++v;
  }
  space = joined;
}

// ---- launches ----

inline unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

// ---- numbers ----

// 1 / (1 + exp(-x)) to about 1e-6 of itself: an exact division takes longer than reading x.
__device__ inline float logistic(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

__device__ inline float activate(std::int32_t kind, float x) {
  switch (kind) {
    case HEDDLE_ACT_RELU:
      return x > 0 ? x : (x <= 0 ? 0.0f : x);  // NaN stays
    case HEDDLE_ACT_SILU:
      return x * logistic(x);
    case HEDDLE_ACT_GELU:
      return x * 0.5f * (1 + erff(x * 0.70710678118654752f));
    case HEDDLE_ACT_GELU_TANH:
      return x * 0.5f * (1 + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
    case HEDDLE_ACT_QUICK_GELU:
      return x * logistic(1.702f * x);
    case HEDDLE_ACT_TANH:
      return tanhf(x);
    default:
      return x;
  }
}

// Sums over a warp or a block, always in the same order; every thread gets the sum.
__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

template <int kThreads>
__device__ inline float block_sum(float value) {
  __shared__ float parts[kThreads / 32];
  value = warp_sum(value);
  __syncthreads();  // whoever still reads the sum before
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) sum += parts[i];
  return sum;
}

}  // namespace heddle::cuda
