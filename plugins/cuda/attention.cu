// attention/1 by our own kernel, for every type, head size, bias and mask: a warp holds some
// queries of one head in registers and goes over the keys once, with the running maximum and sum of
// the softmax. The order of the keys is fixed by the shape.
#include <math_constants.h>

#include "call.h"
#include "kernels.h"
#include "view.cuh"

namespace heddle::cuda {

namespace {

constexpr int kWarps = 8, kThreads = 32 * kWarps;
constexpr int kKeys = 32;    // of a tile: one for each lane
constexpr int kQueries = 2;  // of a warp
constexpr int kBlockQueries = kWarps * kQueries;

struct Attention {
  View q, k, v, bias, out;
  std::int64_t queries, keys, heads;
  std::int32_t d, e, causal;
  float scale, cap;
};

// Of item and head: rows from `begin` on, of which there are `here`, into `rows` of them, `step`
// apart; zeros behind the last.
__device__ __forceinline__ void load_rows(const View& from, std::int64_t item, std::int64_t head,
                                          std::int64_t begin, std::int64_t here, int rows,
                                          int width, int step, float* to) {
  for (int i = threadIdx.x; i < rows * width; i += kThreads) {
    const int j = i / width, c = i % width;
    to[j * step + c] =
        j < here
            ? load(from.data, from.dtype,
                   item * from.stride[0] + (begin + j) * from.stride[1] + head * from.stride[2] + c)
            : 0;
  }
}

// Of the keys before the last that a query may see.
__device__ __forceinline__ std::int64_t keys_before(const Attention& a, std::int64_t query) {
  return a.causal != 0 ? max(std::int64_t{0}, min(query + a.keys - a.queries + 1, a.keys)) : a.keys;
}

// What a query weighs its lane's key with, before the softmax. In shared memory: the query, and the
// keys of the tile.
__device__ __forceinline__ float score_of(const Attention& a, const float* query, const float* key,
                                          std::int64_t item, std::int64_t head,
                                          std::int64_t query_index, std::int64_t key_index) {
  float score = 0;
  for (int c = 0; c < a.d; ++c) score = fmaf(query[c], key[c], score);
  score *= a.scale;
  if (a.cap > 0) score = a.cap * tanhf(score / a.cap);
  if (a.bias.data != nullptr)
    score += load(a.bias.data, a.bias.dtype,
                  item * a.bias.stride[0] + head * a.bias.stride[1] +
                      query_index * a.bias.stride[2] + key_index * a.bias.stride[3]);
  return score;
}

// kChunks: 32-wide pieces of the longer of d and e. Shared memory: keys (32, d + 1), queries (16,
// d), and with kKeepsValues values (32, e), which are else read where they lie: what long heads
// take is more than some cards have. The sums are the same.
template <int kChunks, bool kKeepsValues>
__global__ void __launch_bounds__(kThreads) attend(const __grid_constant__ Attention a) {
  extern __shared__ float shared[];
  float* keys = shared;
  float* queries = keys + kKeys * (a.d + 1);
  float* values = queries + kBlockQueries * a.d;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t item = blockIdx.z, head = blockIdx.y,
                     first = std::int64_t{blockIdx.x} * kBlockQueries;

  load_rows(a.q, item, head, first, a.queries - first, kBlockQueries, a.d, a.d, queries);
  float sums[kQueries][kChunks] = {}, largest[kQueries], total[kQueries] = {};
  std::int64_t seen[kQueries];
#pragma unroll
  for (int n = 0; n < kQueries; ++n) {
    const std::int64_t query = first + warp * kQueries + n;
    largest[n] = -CUDART_INF_F;
    seen[n] = query >= a.queries ? 0 : keys_before(a, query);
  }
  // No query of this block sees a key behind this one.
  const std::int64_t end = keys_before(a, first + kBlockQueries - 1);

  for (std::int64_t begin = 0; begin < end; begin += kKeys) {
    const int here = static_cast<int>(min(std::int64_t{kKeys}, end - begin));
    __syncthreads();
    load_rows(a.k, item, head, begin, here, kKeys, a.d, a.d + 1, keys);
    if constexpr (kKeepsValues) load_rows(a.v, item, head, begin, here, kKeys, a.e, a.e, values);
    __syncthreads();
#pragma unroll
    for (int n = 0; n < kQueries; ++n) {
      const int row = warp * kQueries + n;
      const std::int64_t query = first + row, key = begin + lane;
      const float score = key >= seen[n] ? -CUDART_INF_F
                                         : score_of(a, queries + row * a.d, keys + lane * (a.d + 1),
                                                    item, head, query, key);
      float top = score;
#pragma unroll
      for (int step = 16; step > 0; step /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
      top = fmaxf(top, largest[n]);
      // While nothing has been seen there is nothing to weigh: exp(-inf - -inf) would be NaN.
      const float weight = top == -CUDART_INF_F ? 0 : expf(score - top);
      const float keep = top == -CUDART_INF_F ? 1 : expf(largest[n] - top);
      total[n] = total[n] * keep + warp_sum(weight);
      largest[n] = top;
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) sums[n][chunk] *= keep;
      for (int j = 0; j < here; ++j) {
        const float w = __shfl_sync(0xffffffffu, weight, j);
#pragma unroll
        for (int chunk = 0; chunk < kChunks; ++chunk) {
          const int c = chunk * 32 + lane;
          if (c >= a.e) continue;
          const float value = kKeepsValues
                                  ? values[j * a.e + c]
                                  : load(a.v.data, a.v.dtype,
                                         item * a.v.stride[0] + (begin + j) * a.v.stride[1] +
                                             head * a.v.stride[2] + c);
          sums[n][chunk] = fmaf(w, value, sums[n][chunk]);
        }
      }
    }
  }
#pragma unroll
  for (int n = 0; n < kQueries; ++n) {
    const std::int64_t query = first + warp * kQueries + n;
    if (query >= a.queries) continue;
    const float inverse = total[n] > 0    ? 1 / total[n]
                          : total[n] == 0 ? 0
                                          : total[n];  // sees no key: zeros; NaN stays
    const std::int64_t to =
        item * a.out.stride[0] + query * a.out.stride[1] + head * a.out.stride[2];
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const int c = chunk * 32 + lane;
      if (c < a.e) store(a.out.data, a.out.dtype, to + c, sums[n][chunk] * inverse);
    }
  }
}

constexpr int kMaxHead = 512;

std::size_t shared_bytes(const Attention& a, bool keeps_values) {
  const int values = keeps_values ? kKeys * a.e : 0;
  return sizeof(float) * static_cast<std::size_t>(kKeys * (a.d + 1) + values + kBlockQueries * a.d);
}

template <int kChunks, bool kKeepsValues = true>
void launch(Stream& stream, const Attention& a, dim3 grid) {
  const std::size_t bytes = shared_bytes(a, kKeepsValues);
  if (bytes > 48 * 1024)
    check(
        cudaFuncSetAttribute(attend<kChunks, kKeepsValues>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "cudaFuncSetAttribute");
  attend<kChunks, kKeepsValues><<<grid, kThreads, bytes, stream.raw()>>>(a);
}

struct PlainAttention : Plain {
  static constexpr const char* op = HEDDLE_OP_ATTENTION;
  static void check(const heddle_op_call& call) { cpu::check_attention(call); }
  static std::int32_t fits(Device&, const heddle_op_call& call) {
    return call.in[0]->info.shape[3] <= kMaxHead && call.in[2]->info.shape[3] <= kMaxHead ? 1 : 0;
  }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const auto own = [](const heddle_view& view) { return view_of(&view, view.info); };
    const auto& attr = attrs<heddle_attention_attrs>(call);
    const heddle_tensor_info& whole = out(call).info;
    Attention a{own(in(call, 0)),
                own(in(call, 1)),
                own(in(call, 2)),
                {},
                own(out(call)),
                whole.shape[1],
                in(call, 1).info.shape[1],
                whole.shape[2],
                static_cast<std::int32_t>(in(call, 0).info.shape[3]),
                static_cast<std::int32_t>(whole.shape[3]),
                attr.causal,
                static_cast<float>(attr.scale),
                attr.cap};
    if (const heddle_view* bias = device::operand(call, 3)) a.bias = own(*bias);
    if (device::element_count(whole) == 0) return;
    const dim3 grid(blocks_for(a.queries, kBlockQueries), static_cast<unsigned>(a.heads),
                    static_cast<unsigned>(whole.shape[0]));
    if (shared_bytes(a, true) > most_shared_bytes(stream.device().card()))
      launch<16, false>(stream, a, grid);
    else if (a.e <= 64)
      launch<2>(stream, a, grid);
    else if (a.e <= 128)
      launch<4>(stream, a, grid);
    else
      launch<16>(stream, a, grid);
  }
};

}  // namespace

constexpr heddle_kernel kAttention = kernel_table<PlainAttention>();

}  // namespace heddle::cuda
