// RMS norm and rotation of pairs that lie half a head apart. Sums are in f32, always in the same
// order.
#include <algorithm>
#include <bit>

#include "call.h"
#include "kernels.h"
#include "norm.cuh"

namespace heddle::cuda {

namespace {

// A call of (items, tokens, heads, width).
struct Turned {
  View x, weight, cosines, sines, out;
  Space space;
  std::int64_t tokens, heads;
  int width, head, pairs;
  float eps;
};

Turned turned_of(const heddle_op_call& call) {
  const heddle_tensor_info& whole = out(call).info;
  const auto& given = attrs<heddle_norm_rope_half_attrs>(call);
  return {view_of(call.in[0], whole),
          spread(device::operand(call, 1), whole),
          view_of(call.in[2], call.in[2]->info),
          view_of(call.in[3], call.in[3]->info),
          view_of(call.out[0], whole),
          space_of(whole),
          whole.shape[1],
          whole.shape[2],
          static_cast<int>(whole.shape[3]),
          given.head,
          given.pairs,
          static_cast<float>(given.eps)};
}

// ---- rows of any length: a warp each, a pair by one lane ----

constexpr int kPlainThreads = 256;

__global__ void __launch_bounds__(kPlainThreads)
    norm_rope_half(const __grid_constant__ Turned call) {
  const int lane = threadIdx.x % 32;
  const std::int64_t rows = call.space.count / call.width;
  const std::int64_t row = blockIdx.x * std::int64_t{kPlainThreads / 32} + threadIdx.x / 32;
  if (row >= rows) return;
  const std::int64_t x = offset_of(call.x, call.space, row, 3),
                     out = offset_of(call.out, call.space, row, 3),
                     token = row / call.heads % call.tokens;
  float scale = 1;
  if (call.weight.data != nullptr) {
    float squares = 0;
    for (int i = lane; i < call.width; i += 32) {
      const float value = load(call.x.data, call.x.dtype, x + i);
      squares += value * value;
    }
    scale = 1 / sqrtf(warp_sum(squares) / static_cast<float>(call.width) + call.eps);
  }
  const auto normed = [&](int i) {
    const float value = load(call.x.data, call.x.dtype, x + i);
    return call.weight.data != nullptr
               ? value * scale * load(call.weight.data, call.weight.dtype, i)
               : value;
  };
  const auto put = [&](int i, float value) {
    store(call.out.data, call.out.dtype, out + i, value);
  };
  const auto* cosines =
      static_cast<const float*>(call.cosines.data) + token * call.cosines.stride[0];
  const auto* sines = static_cast<const float*>(call.sines.data) + token * call.sines.stride[0];
  const int each = call.head - call.pairs;  // of a head: its pairs, then what stays
  for (int i = lane; i < call.width / call.head * each; i += 32) {
    const int number = i / each, place = i - number * each, first = number * call.head + place;
    if (place >= call.pairs) {
      put(first + call.pairs, normed(first + call.pairs));
      continue;
    }
    const int column = number * call.pairs + place;
    const float a = normed(first), b = normed(first + call.pairs),
                cosine = cosines[column * call.cosines.stride[1]],
                sine = sines[column * call.sines.stride[1]];
    put(first, a * cosine - b * sine);
    put(first + call.pairs, a * sine + b * cosine);
  }
}

struct NormRopeHalf : Plain {
  static constexpr const char* op = HEDDLE_OP_NORM_ROPE_HALF;
  static void check(const heddle_op_call& call) { cpu::check_norm_rope_half(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const Turned turned = turned_of(call);
    if (turned.space.count == 0) return;
    const std::int64_t rows = turned.space.count / turned.width;
    norm_rope_half<<<blocks_for(rows, kPlainThreads / 32), kPlainThreads, 0, stream.raw()>>>(
        turned);
  }
};

// ---- eights: of a pair of eights each thread has one, and gets the other's numbers ----

// Eights that lie in the same half of the same head are together in front of the same column of
// eight angles, and their partners `pairs` numbers away. REQUIRES: head and pairs are whole eights.
struct Eight {
  int partner;  // numbers from this eight to that with which it turns; 0: it stays
  int column;   // of its angles
};

__device__ inline Eight eight_at(int column, const Turned& call) {
  const int number = column / call.head, place = column - number * call.head;
  if (place >= 2 * call.pairs) return {0, 0};
  const bool is_second = place >= call.pairs;
  return {is_second ? -call.pairs : call.pairs,
          number * call.pairs + place - (is_second ? call.pairs : 0)};
}

__device__ inline void read_angles(const View& table, std::int64_t token, int column,
                                   float (&to)[kVectorSize]) {
  load_vector(table.data, HEDDLE_F32, token * table.stride[0] + column, kVectorSize, to);
}

// own, turned with the numbers of its partner, both normed.
__device__ inline void turn(const Eight& eight, const float (&cosine)[kVectorSize],
                            const float (&sine)[kVectorSize], const float (&other)[kVectorSize],
                            float (&own)[kVectorSize]) {
  if (eight.partner == 0) return;
  const float sign = eight.partner > 0 ? -1.0f : 1.0f;
#pragma unroll
  for (int i = 0; i < kVectorSize; ++i) own[i] = own[i] * cosine[i] + sign * other[i] * sine[i];
}

// ---- rows of up to 8192: a block each, whose numbers wait in shared memory for their partners
// ----

constexpr int kRowThreads = 128;
constexpr int kMostEights = 8;  // of a thread

template <int kEights>
__global__ void __launch_bounds__(kRowThreads)
    norm_rope_half_row(const __grid_constant__ Turned call) {
  extern __shared__ float normed[];
  const std::int64_t row = blockIdx.x, token = row / call.heads % call.tokens,
                     x = offset_of(call.x, call.space, row, 3),
                     out = offset_of(call.out, call.space, row, 3);
  const auto column_of = [](int n) {
    return (n * kRowThreads + static_cast<int>(threadIdx.x)) * kVectorSize;
  };
  float values[kEights][kVectorSize], factors[kEights][kVectorSize], squares = 0;
  const bool norms = call.weight.data != nullptr;
#pragma unroll
  for (int n = 0; n < kEights; ++n) {
    const int column = column_of(n);
    const bool inside = column < call.width;
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) values[n][i] = 0, factors[n][i] = 1;
    if (inside) load_vector(call.x.data, call.x.dtype, x + column, kVectorSize, values[n]);
    if (inside && norms)
      load_vector(call.weight.data, call.weight.dtype, column, kVectorSize, factors[n]);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) squares += values[n][i] * values[n][i];
  }
  float scale = 1;
  if (norms)  // the same for all threads
    scale = 1 / sqrtf(block_sum<kRowThreads>(squares) / static_cast<float>(call.width) + call.eps);
#pragma unroll
  for (int n = 0; n < kEights; ++n) {
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) values[n][i] *= scale * factors[n][i];
    if (column_of(n) < call.width)
      store_vector(normed, HEDDLE_F32, column_of(n), kVectorSize, values[n]);
  }
  __syncthreads();
#pragma unroll
  for (int n = 0; n < kEights; ++n) {
    const int column = column_of(n);
    if (column >= call.width) break;
    const Eight eight = eight_at(column, call);
    float other[kVectorSize], cosine[kVectorSize], sine[kVectorSize];
    load_vector(normed, HEDDLE_F32, column + eight.partner, kVectorSize, other);
    read_angles(call.cosines, token, eight.column, cosine);
    read_angles(call.sines, token, eight.column, sine);
    turn(eight, cosine, sine, other, values[n]);
    store_vector(call.out.data, call.out.dtype, out + column, kVectorSize, values[n]);
  }
}

// ---- short rows, the heads of a token: a few lanes of a warp have one ----

constexpr int kHeadThreads = 128;
constexpr int kMostLanes = 32;

template <int kLanes>
__global__ void __launch_bounds__(kHeadThreads)
    norm_rope_half_head(const __grid_constant__ Turned call) {
  const std::int64_t rows = call.space.count / call.width,
                     own = std::int64_t{blockIdx.x} * (kHeadThreads / kLanes) +
                           static_cast<int>(threadIdx.x) / kLanes,
                     row = min(own, rows - 1),  // lanes without one take part in the shuffles
      token = row / call.heads % call.tokens;
  const int lane = static_cast<int>(threadIdx.x) % kLanes, column = lane * kVectorSize;
  const bool inside = column < call.width;
  float values[kVectorSize] = {}, factors[kVectorSize], other[kVectorSize], cosine[kVectorSize],
        sine[kVectorSize];
  if (inside)
    load_vector(call.x.data, call.x.dtype, offset_of(call.x, call.space, row, 3) + column,
                kVectorSize, values);
  Eight eight{0, 0};
  if (inside) eight = eight_at(column, call);
  if (eight.partner != 0) {
    read_angles(call.cosines, token, eight.column, cosine);
    read_angles(call.sines, token, eight.column, sine);
  }
  if (call.weight.data != nullptr) {
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) factors[i] = 1;
    if (inside) load_vector(call.weight.data, call.weight.dtype, column, kVectorSize, factors);
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) squares += values[i] * values[i];
#pragma unroll
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2)
      squares += __shfl_xor_sync(0xffffffffu, squares, lanes);
    const float scale = 1 / sqrtf(squares / static_cast<float>(call.width) + call.eps);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) values[i] *= scale * factors[i];
  }
  const int from = static_cast<int>(threadIdx.x) % 32 + eight.partner / kVectorSize;
#pragma unroll
  for (int i = 0; i < kVectorSize; ++i) other[i] = __shfl_sync(0xffffffffu, values[i], from);
  turn(eight, cosine, sine, other, values);
  if (inside && own < rows)
    store_vector(call.out.data, call.out.dtype, offset_of(call.out, call.space, row, 3) + column,
                 kVectorSize, values);
}

struct VectorNormRopeHalf {
  static constexpr const char* name = "vector";
  static constexpr const char* op = HEDDLE_OP_NORM_ROPE_HALF;
  static constexpr std::int64_t kMostBlocks = 0x7fffffff;  // of a grid's first axis
  static std::size_t workspace(Device&, const heddle_op_call&) { return 0; }
  static void check(const heddle_op_call& call) { cpu::check_norm_rope_half(call); }
  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    const auto& given = attrs<heddle_norm_rope_half_attrs>(call);
    const heddle_tensor_info& whole = call.out[0]->info;
    const std::int64_t width = whole.shape[3];
    const bool is_whole = given.head > 0 && given.head % kVectorSize == 0 && given.pairs > 0 &&
                          given.pairs % kVectorSize == 0 && width > 0 && width % given.head == 0 &&
                          width <= kRowThreads * kVectorSize * kMostEights;
    const auto is_dense = [&](std::uint32_t table) { return call.in[table]->info.stride[1] == 1; };
    return !device.settings().reference_only && is_whole && is_dense(2) && is_dense(3) &&
                   whole.shape[0] * whole.shape[1] * whole.shape[2] <= kMostBlocks
               ? 10
               : 0;
  }
  template <int kEights = 1>
  static void launch_rows(Stream& stream, const Turned& turned, unsigned rows) {
    constexpr int kNext = kEights > 3 ? 2 * kEights : kEights + 1;
    if constexpr (kEights < kMostEights)
      if (turned.width > kRowThreads * kVectorSize * kEights)
        return launch_rows<kNext>(stream, turned, rows);
    const std::size_t shared = static_cast<std::size_t>(turned.width) * sizeof(float);
    norm_rope_half_row<kEights><<<rows, kRowThreads, shared, stream.raw()>>>(turned);
  }
  template <int kLanes = 2>
  static void launch_heads(Stream& stream, const Turned& turned, std::int64_t rows) {
    if constexpr (kLanes < kMostLanes)
      if (turned.width > kLanes * kVectorSize)
        return launch_heads<2 * kLanes>(stream, turned, rows);
    norm_rope_half_head<kLanes>
        <<<blocks_for(rows, kHeadThreads / kLanes), kHeadThreads, 0, stream.raw()>>>(turned);
  }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const Turned turned = turned_of(call);
    if (turned.space.count == 0) return;
    const std::int64_t rows = turned.space.count / turned.width;
    if (turned.width <= kMostLanes * kVectorSize)
      launch_heads(stream, turned, rows);
    else
      launch_rows(stream, turned, static_cast<unsigned>(rows));
  }
};

}  // namespace

constexpr heddle_kernel kNormRopeHalf = kernel_table<NormRopeHalf>();
constexpr heddle_kernel kVectorNormRopeHalf = kernel_table<VectorNormRopeHalf>();

}  // namespace heddle::cuda
