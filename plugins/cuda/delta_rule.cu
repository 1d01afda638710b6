// gated_delta_rule/1: a warp has one column of a head's matrix in registers, a lane every 32nd of
// its elements, and goes through the tokens one after the other. A column meets no other one, so
// heads times columns are independent: 4,096 warps of the published models. What the next token
// brings is read before this one is computed, since the chain from token to token is short.
#include <cmath>

#include "call.h"
#include "heddle/abi/delta_ops.h"
#include "kernels.h"
#include "view.cuh"

namespace heddle::cuda {

namespace {

constexpr int kWarp = 32;
constexpr int kDeltaColumns = 8;  // of a block, neighbours, so that they share what they read
constexpr int kMostParts = 8;     // elements of a lane
// Beyond this softplus(x) is x in f32.
constexpr float kLinearFrom = 20;

struct DeltaCall {
  View qk, v, gates, log_rate, shift, before, out, state;
  std::int64_t tokens, pairs, heads, depth, width;
  float eps, scale;
};

__device__ inline float summed(float x) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}

// Of a token, as it is read.
template <int kParts>
struct DeltaToken {
  float q[kParts], k[kParts], v, decay, share;

  __device__ void read(const DeltaCall& c, std::int64_t item, std::int64_t head, std::int64_t pair,
                       std::int64_t column, std::int64_t token) {
    const std::int64_t at = item * c.qk.stride[0] + token * c.qk.stride[1],
                       gate = item * c.gates.stride[0] + token * c.gates.stride[1] + head;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      const std::int64_t d = threadIdx.x + i * kWarp;
      q[i] = d < c.depth ? load(c.qk.data, c.qk.dtype, at + pair * c.qk.stride[2] + d) : 0;
      k[i] =
          d < c.depth ? load(c.qk.data, c.qk.dtype, at + (pair + c.pairs) * c.qk.stride[2] + d) : 0;
    }
    v = load(c.v.data, c.v.dtype,
             item * c.v.stride[0] + token * c.v.stride[1] + head * c.v.stride[2] + column);
    decay = load(c.gates.data, c.gates.dtype, gate);
    share = load(c.gates.data, c.gates.dtype, gate + c.heads);
  }
};

template <int kParts>
__global__ void __launch_bounds__(kWarp* kDeltaColumns) delta_rule(DeltaCall c) {
  const std::int64_t column = std::int64_t(blockIdx.x) * kDeltaColumns + threadIdx.y;
  const std::int64_t item = blockIdx.y / c.heads, head = blockIdx.y % c.heads,
                     pair = head / (c.heads / c.pairs);
  if (column >= c.width) return;  // whole warps
  const float rate = expf(load(c.log_rate.data, c.log_rate.dtype, head)),
              shift = load(c.shift.data, c.shift.dtype, head);
  const auto place = [&](const View& state, int i) {
    return item * state.stride[0] + head * state.stride[1] +
           (threadIdx.x + std::int64_t(i) * kWarp) * state.stride[2] + column;
  };
  float m[kParts];
#pragma unroll
  for (int i = 0; i < kParts; ++i)
    m[i] = c.before.data != nullptr && threadIdx.x + i * kWarp < c.depth
               ? static_cast<const float*>(c.before.data)[place(c.before, i)]
               : 0.0f;
  DeltaToken<kParts> next;
  if (c.tokens > 0) next.read(c, item, head, pair, column, 0);
  for (std::int64_t token = 0; token < c.tokens; ++token) {
    const DeltaToken<kParts> now = next;
    if (token + 1 < c.tokens) next.read(c, item, head, pair, column, token + 1);
    float q_squares = 0, k_squares = 0;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      q_squares = fmaf(now.q[i], now.q[i], q_squares);
      k_squares = fmaf(now.k[i], now.k[i], k_squares);
    }
    const float q_factor = c.scale / sqrtf(summed(q_squares) + c.eps),
                k_factor = 1.0f / sqrtf(summed(k_squares) + c.eps);
    const float x = now.decay + shift, softplus = x > kLinearFrom ? x : log1pf(expf(x)),
                decay = expf(-rate * softplus), share = 1.0f / (1.0f + expf(-now.share));
    float there = 0;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      m[i] *= decay;
      there = fmaf(now.k[i] * k_factor, m[i], there);
    }
    const float change = share * (now.v - summed(there));
    float out = 0;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      m[i] = fmaf(now.k[i] * k_factor, change, m[i]);
      out = fmaf(now.q[i] * q_factor, m[i], out);
    }
    out = summed(out);
    if (threadIdx.x == 0)
      store(c.out.data, c.out.dtype,
            item * c.out.stride[0] + token * c.out.stride[1] + head * c.out.stride[2] + column,
            out);
  }
#pragma unroll
  for (int i = 0; i < kParts; ++i)
    if (threadIdx.x + i * kWarp < c.depth)
      static_cast<float*>(c.state.data)[place(c.state, i)] = m[i];
}

struct GatedDeltaRule : Plain {
  static constexpr const char* op = HEDDLE_OP_GATED_DELTA_RULE;
  static void check(const heddle_op_call& call) { cpu::check_gated_delta_rule(call); }
  static std::int32_t fits(Device&, const heddle_op_call& call) {
    constexpr std::int64_t kMostRows = 65535;  // of a grid
    const heddle_tensor_info &qk = in(call, 0).info, &v = in(call, 1).info;
    return qk.shape[3] <= kWarp * kMostParts && v.shape[0] * v.shape[2] <= kMostRows ? 1 : 0;
  }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const auto view = [](const heddle_view& of) { return view_of(&of, of.info); };
    const heddle_tensor_info &qk = in(call, 0).info, &v = in(call, 1).info;
    if (v.shape[0] * v.shape[2] * v.shape[3] == 0) return;
    const auto& given = attrs<heddle_gated_delta_rule_attrs>(call);
    const bool continues = call.in_count > 5 && call.in[5] != nullptr;
    const DeltaCall c{view(in(call, 0)),
                      view(in(call, 1)),
                      view(in(call, 2)),
                      view(in(call, 3)),
                      view(in(call, 4)),
                      continues ? view(in(call, 5)) : View{},
                      view(out(call)),
                      view(out(call, 1)),
                      qk.shape[1],
                      qk.shape[2] / 2,
                      v.shape[2],
                      qk.shape[3],
                      v.shape[3],
                      static_cast<float>(given.eps),
                      static_cast<float>(given.scale)};
    const dim3 blocks(static_cast<unsigned>((c.width + kDeltaColumns - 1) / kDeltaColumns),
                      static_cast<unsigned>(v.shape[0] * v.shape[2])),
        threads(kWarp, kDeltaColumns);
    if (c.depth <= kWarp * 4)
      delta_rule<4><<<blocks, threads, 0, stream.raw()>>>(c);
    else
      delta_rule<kMostParts><<<blocks, threads, 0, stream.raw()>>>(c);
  }
};

}  // namespace

constexpr heddle_kernel kGatedDeltaRule = kernel_table<GatedDeltaRule>();

}  // namespace heddle::cuda
