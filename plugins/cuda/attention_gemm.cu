// attention/1 by two products of cuBLASLt and our own softmax between them, for 16-bit operands
// with heads that are longer than cuDNN's: the one head of an autoencoder's middle. Some queries
// at a time, so that their scores take kMostScores at most and not the square of the tokens.
#include <math_constants.h>

#include <algorithm>

#include "call.h"
#include "kernels.h"
#include "linear.cuh"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 512;
constexpr std::int64_t kMostScores = 256 << 20;  // bytes, in f32
constexpr std::int64_t kLeastQueries = 64, kQueryTile = 128;
constexpr std::int64_t kMostHeads = 64;  // of all items: each is products of its own

__device__ float block_max(float value) {
  __shared__ float of_warp[kThreads / 32];
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  for (float other : of_warp) value = fmaxf(value, other);
  return value;
}

// A block for each query: its scores (f32, rows of whole fours) become weights of the operands'
// type between 0 and 1, and `inverse` what the weighted sum is to be multiplied by. A thread keeps
// kFours fours of scores between the largest one and the weights; 0: it reads them again.
template <int kFours>
__global__ void __launch_bounds__(kThreads)
    weigh(const float* scores, void* weights, std::int32_t dtype, float* inverse, int keys,
          std::int64_t step, float scale) {
  const float* const row = scores + blockIdx.x * step;
  // Beyond the last key: numbers that are no scores.
  const auto read = [&](int at) {
    float4 four = *reinterpret_cast<const float4*>(row + at);
    if (at + 1 >= keys) four.y = -CUDART_INF_F;
    if (at + 2 >= keys) four.z = -CUDART_INF_F;
    if (at + 3 >= keys) four.w = -CUDART_INF_F;
    return four;
  };
  const int first = static_cast<int>(threadIdx.x) * 4;
  constexpr int kStride = kThreads * 4;
  float4 kept[kFours > 0 ? kFours : 1];
  float top = -CUDART_INF_F;
  const auto see = [&](const float4& four) {
    top = fmaxf(top, fmaxf(fmaxf(four.x, four.y), fmaxf(four.z, four.w)));
  };
  if constexpr (kFours > 0) {
#pragma unroll
    for (int n = 0; n < kFours; ++n) {
      const int at = first + n * kStride;
      if (at < keys) kept[n] = read(at);
    }
#pragma unroll
    for (int n = 0; n < kFours; ++n)
      if (first + n * kStride < keys) see(kept[n]);
  } else {
    for (int at = first; at < keys; at += kStride) see(read(at));
  }
  // 2^(x log2 e) is e^x; scale is positive.
  const float power = scale * 1.4426950408889634f, shift = -block_max(top) * power;
  float sum = 0;
  const auto write = [&](int at, const float4& four) {
    const float e[4] = {exp2f(fmaf(four.x, power, shift)), exp2f(fmaf(four.y, power, shift)),
                        exp2f(fmaf(four.z, power, shift)), exp2f(fmaf(four.w, power, shift))};
    uint2 raw;
    // What is summed is what values are multiplied with.
    if (dtype == HEDDLE_BF16) {
      auto* const rounded = reinterpret_cast<__nv_bfloat16*>(&raw);
#pragma unroll
      for (int i = 0; i < 4; ++i) sum += __bfloat162float(rounded[i] = __float2bfloat16_rn(e[i]));
    } else {
      auto* const rounded = reinterpret_cast<__half*>(&raw);
#pragma unroll
      for (int i = 0; i < 4; ++i) sum += __half2float(rounded[i] = __float2half_rn(e[i]));
    }
    *reinterpret_cast<uint2*>(static_cast<__half*>(weights) + blockIdx.x * step + at) = raw;
  };
  if constexpr (kFours > 0) {
#pragma unroll
    for (int n = 0; n < kFours; ++n)
      if (first + n * kStride < keys) write(first + n * kStride, kept[n]);
  } else {
    for (int at = first; at < keys; at += kStride) write(at, read(at));
  }
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) inverse[blockIdx.x] = 1 / sum;
}

__global__ void __launch_bounds__(256)
    finish(const float* sums, const float* inverse, void* out, std::int32_t dtype,
           std::int64_t rows, std::int64_t width, std::int64_t step) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  if (i >= rows * width) return;
  const std::int64_t row = i / width;
  store(out, dtype, row * step + i % width, sums[i] * inverse[row]);
}

// What there is to do for one head of one item, and where in the workspace.
struct Way {
  std::int64_t items, heads, queries, keys, d, e, chunk;
  Gemm scores, sums;
  std::size_t scores_at, weights_at, sums_at, inverse_at, bytes;
};

Gemm gemm(std::int64_t m, std::int64_t n, std::int64_t k, heddle_dtype operands) {
  Gemm p{};
  p.m = m, p.n = n, p.k = k, p.batch = 1;
  p.operands = operands;
  p.result = HEDDLE_F32;
  p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  return p;
}

// The products for so many queries.
void set_queries(Way& way, std::int64_t count) { way.scores.m = way.sums.m = count; }

// False: it does not fit. Whether the library has algorithms is not asked here: that takes
// milliseconds, and another kernel is chosen most of the time.
bool plan(Device& device, const heddle_op_call& call, Way& way) {
  const heddle_tensor_info &q = call.in[0]->info, &k = call.in[1]->info, &v = call.in[2]->info,
                           &whole = call.out[0]->info;
  if (!device.multiplies() || device::operand(call, 3) != nullptr ||
      attrs<heddle_attention_attrs>(call).causal != 0 ||
      attrs<heddle_attention_attrs>(call).cap != 0 ||
      !(attrs<heddle_attention_attrs>(call).scale > 0))
    return false;
  if ((q.dtype != HEDDLE_BF16 && q.dtype != HEDDLE_F16) || k.dtype != q.dtype ||
      v.dtype != q.dtype || !device::is_compute_float(whole.dtype) || whole.stride[3] != 1)
    return false;
  way.items = q.shape[0], way.queries = q.shape[1], way.heads = q.shape[2], way.d = q.shape[3];
  way.keys = k.shape[1], way.e = v.shape[3];
  if (way.items * way.heads > kMostHeads || way.queries == 0 || way.keys == 0) return false;
  if (2.0 * double(way.items * way.heads * way.queries) * double(way.keys) * double(way.d + way.e) <
      device.settings().cudnn_flops)
    return false;
  for (const heddle_tensor_info* info : {&q, &k, &v}) {
    if (info->stride[3] != 1 || !divides(info->shape[3], info->dtype)) return false;
    for (int axis = 0; axis < 3; ++axis)
      if (info->shape[axis] > 1 && !divides(info->stride[axis], info->dtype)) return false;
    if (info->shape[1] > 1 && info->stride[1] < info->shape[3]) return false;
  }
  const auto step_of = [](const heddle_tensor_info& info) {
    return info.shape[1] > 1 ? info.stride[1] : info.shape[3];
  };
  const std::int64_t row = (way.keys + 7) / 8 * 8;  // of scores and weights: whole 16 bytes
  const std::int64_t most = std::max(kLeastQueries, kMostScores / (row * std::int64_t{4}));
  way.chunk = std::min(way.queries, most / kQueryTile > 0 ? most / kQueryTile * kQueryTile : most);
  way.scores = gemm(way.chunk, way.keys, way.d, q.dtype);
  way.scores.x_step = step_of(q), way.scores.weight_step = step_of(k);
  way.scores.out_step = row;
  way.sums = gemm(way.chunk, way.e, way.keys, q.dtype);
  way.sums.x_step = row, way.sums.weight_step = step_of(v), way.sums.out_step = way.e;
  way.sums.is_weight_flipped = true;
  const auto scores = static_cast<std::size_t>(way.chunk * row);
  way.scores_at = std::max(Matmul::workspace_bytes(way.scores), Matmul::workspace_bytes(way.sums));
  way.weights_at = way.scores_at + aligned(scores * sizeof(float));
  way.sums_at = way.weights_at + aligned(scores * 2);
  way.inverse_at =
      way.sums_at + aligned(static_cast<std::size_t>(way.chunk * way.e) * sizeof(float));
  way.bytes = way.inverse_at + aligned(static_cast<std::size_t>(way.chunk) * sizeof(float));
  return true;
}

bool has_algorithms(Matmul& library, Way way) {
  for (const std::int64_t count : {way.chunk, way.queries % way.chunk}) {
    if (count == 0) continue;
    set_queries(way, count);
    if (!library.takes(way.scores) || !library.takes(way.sums)) return false;
  }
  return true;
}

struct GemmAttention {
  static constexpr const char* op = HEDDLE_OP_ATTENTION;
  static constexpr const char* name = "cublaslt";
  static void check(const heddle_op_call& call) { cpu::check_attention(call); }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    Way way;
    return plan(device, call, way) ? 10 : 0;
  }

  static std::size_t workspace(Device& device, const heddle_op_call& call) {
    Way way;
    return plan(device, call, way) ? way.bytes : 0;
  }

  static void run(Stream& stream, const heddle_op_call& call, void* workspace) {
    Way way;
    // It was chosen because the library is there; whether it can be opened, the first work finds.
    Matmul* const library = stream.device().matmul();
    if (library == nullptr) return launch_other(kAttention, stream, call);
    if (!plan(stream.device(), call, way))
      device::fail(HEDDLE_UNSUPPORTED, "does not fit ", device::describe(in(call, 0).info));
    for (const void* at : {in(call, 0).data, in(call, 1).data, in(call, 2).data})
      if (!lies_at_16(at)) return launch_other(kAttention, stream, call);
    if (!has_algorithms(*library, way)) return launch_other(kAttention, stream, call);
    for (std::int64_t item = 0; item < way.items; ++item)
      for (std::int64_t head = 0; head < way.heads; ++head)
        for (std::int64_t first = 0; first < way.queries; first += way.chunk) {
          set_queries(way, std::min(way.chunk, way.queries - first));
          some_queries(stream, call, way, {item, head, first}, static_cast<char*>(workspace));
        }
  }

 private:
  struct At {
    std::int64_t item, head, query;
  };

  static void* element(const heddle_view& view, const At& at) {
    const std::int64_t* const step = view.info.stride;
    return static_cast<char*>(view.data) +
           (at.item * step[0] + at.query * step[1] + at.head * step[2]) *
               std::int64_t(device::dtype_bytes(view.info.dtype));
  }

  static void some_queries(Stream& stream, const heddle_op_call& call, const Way& way, const At& at,
                           char* memory) {
    auto* const scores = reinterpret_cast<float*>(memory + way.scores_at);
    auto* const sums = reinterpret_cast<float*>(memory + way.sums_at);
    auto* const inverse = reinterpret_cast<float*>(memory + way.inverse_at);
    void* const weights = memory + way.weights_at;
    const std::int64_t rows = way.scores.m;
    const heddle_view& result = out(call);
    const At keys{at.item, at.head, 0};
    multiply(stream, way.scores,
             {.x = element(in(call, 0), at),
              .weight = element(in(call, 1), keys),
              .out = scores,
              .workspace = memory});
    constexpr std::int64_t kFour = kThreads * 4;
    using Kernel = void (*)(const float*, void*, std::int32_t, float*, int, std::int64_t, float);
    const Kernel kernel = way.keys <= 8 * kFour    ? Kernel{weigh<8>}
                          : way.keys <= 16 * kFour ? Kernel{weigh<16>}
                                                   : Kernel{weigh<0>};
    kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream.raw()>>>(
        scores, weights, way.sums.operands, inverse, static_cast<int>(way.keys),
        way.scores.out_step, static_cast<float>(attrs<heddle_attention_attrs>(call).scale));
    multiply(
        stream, way.sums,
        {.x = weights, .weight = element(in(call, 2), keys), .out = sums, .workspace = memory});
    finish<<<blocks_for(rows * way.e, 256), 256, 0, stream.raw()>>>(
        sums, inverse, element(result, at), result.info.dtype, rows, way.e, result.info.stride[1]);
  }

  static void multiply(Stream& stream, const Gemm& gemm, const Matrices& matrices) {
    if (!stream.device().matmul()->multiply(stream.raw(), gemm, matrices))
      device::fail(HEDDLE_INTERNAL, "cuBLASLt has no algorithm any more for heads of ", gemm.k,
                   " numbers");
  }
};

}  // namespace

constexpr heddle_kernel kGemmAttention = kernel_table<GemmAttention>();

}  // namespace heddle::cuda
