// depthwise_conv2d/1: memory limits it, so a thread makes eight channels of a pixel and reads what
// it needs of its neighbours out of the caches. The terms are summed one after the other in f32.
#include "call.h"
#include "kernels.h"
#include "view.cuh"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 256;

struct Filter {
  View weight, bias;  // bias: without data where there is none
  std::int64_t down, across, height, width;
  std::int32_t stride[2], padding[2];
};

__global__ void depthwise(const __grid_constant__ View in, const __grid_constant__ View out,
                          const __grid_constant__ Space space,
                          const __grid_constant__ Filter filter) {
  const std::int64_t channels = space.shape[3], wide = space.shape[2], high = space.shape[1],
                     pieces = (channels + kVectorSize - 1) / kVectorSize;
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= space.shape[0] * high * wide * pieces) return;
  const std::int64_t pixel = index / pieces, column = (index - pixel * pieces) * kVectorSize;
  const std::int64_t line = pixel / wide, w = pixel - line * wide, item = line / high,
                     h = line - item * high;
  const int count = static_cast<int>(min(std::int64_t{kVectorSize}, channels - column));
  float sums[kVectorSize] = {};
  if (filter.bias.data != nullptr)
    load_vector(filter.bias.data, filter.bias.dtype, column, count, sums);
  for (std::int64_t r = 0; r < filter.down; ++r) {
    const std::int64_t y = h * filter.stride[0] - filter.padding[0] + r;
    if (y < 0 || y >= filter.height) continue;
    for (std::int64_t s = 0; s < filter.across; ++s) {
      const std::int64_t z = w * filter.stride[1] - filter.padding[1] + s;
      if (z < 0 || z >= filter.width) continue;
      float values[kVectorSize], factors[kVectorSize];
      load_vector(in.data, in.dtype,
                  item * in.stride[0] + y * in.stride[1] + z * in.stride[2] + column, count,
                  values);
      load_vector(filter.weight.data, filter.weight.dtype,
                  r * filter.weight.stride[0] + s * filter.weight.stride[1] + column, count,
                  factors);
#pragma unroll
      for (int i = 0; i < kVectorSize; ++i) sums[i] = fmaf(values[i], factors[i], sums[i]);
    }
  }
  store_vector(out.data, out.dtype,
               item * out.stride[0] + h * out.stride[1] + w * out.stride[2] + column, count, sums);
}

struct DepthwiseConv2d : Plain {
  static constexpr const char* op = HEDDLE_OP_DEPTHWISE_CONV2D;
  static void check(const heddle_op_call& call) { cpu::check_depthwise_conv2d(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const auto& a = attrs<heddle_conv2d_attrs>(call);
    const heddle_tensor_info &x = in(call, 0).info, &weight = in(call, 1).info,
                             &whole = out(call).info;
    const Space space = space_of(whole);
    if (space.count == 0) return;
    Filter filter{view_of(call.in[1], weight),
                  {},
                  weight.shape[0],
                  weight.shape[1],
                  x.shape[1],
                  x.shape[2],
                  {a.stride[0], a.stride[1]},
                  {a.padding[0], a.padding[1]}};
    if (const heddle_view* bias = device::operand(call, 2)) filter.bias = view_of(bias, bias->info);
    const std::int64_t items =
        space.count / whole.shape[3] * ((whole.shape[3] + kVectorSize - 1) / kVectorSize);
    depthwise<<<blocks_for(items, kThreads), kThreads, 0, stream.raw()>>>(
        view_of(call.in[0], x), view_of(call.out[0], whole), space, filter);
  }
};

}  // namespace

constexpr heddle_kernel kDepthwiseConv2d = kernel_table<DepthwiseConv2d>();

}  // namespace heddle::cuda
