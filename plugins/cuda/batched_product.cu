// batched_product/1, plain: a thread for each element of the output, neighbours in neighbouring
// columns. Sums in f32.
#include "call.h"
#include "kernels.h"
#include "view.cuh"

namespace heddle::cuda {

namespace {

constexpr int kProductThreads = 128;

__global__ void __launch_bounds__(kProductThreads)
    multiply_batched(View a, View b, View out, std::int64_t rows, std::int64_t inner,
                     std::int64_t width, std::int64_t all) {
  const std::int64_t stride = std::int64_t(gridDim.x) * kProductThreads;
  for (std::int64_t i = std::int64_t(blockIdx.x) * kProductThreads + threadIdx.x; i < all;
       i += stride) {
    const std::int64_t n = i % width, row = i / width % rows, item = i / width / rows;
    const std::int64_t from_a = item * a.stride[0] + row * a.stride[1],
                       from_b = item * b.stride[0] + n;
    float sum = 0;
    for (std::int64_t k = 0; k < inner; ++k)
      sum = fmaf(load(a.data, a.dtype, from_a + k), load(b.data, b.dtype, from_b + k * b.stride[1]),
                 sum);
    store(out.data, out.dtype, item * out.stride[0] + row * out.stride[1] + n, sum);
  }
}

struct BatchedProduct : Plain {
  static constexpr const char* op = HEDDLE_OP_BATCHED_PRODUCT;
  static void check(const heddle_op_call& call) { cpu::check_batched_product(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    constexpr std::int64_t kMostBlocks = 1 << 20;
    const heddle_tensor_info& info = out(call).info;
    const std::int64_t all = info.shape[0] * info.shape[1] * info.shape[2];
    if (all == 0) return;
    const std::int64_t wanted = (all + kProductThreads - 1) / kProductThreads,
                       blocks = wanted < kMostBlocks ? wanted : kMostBlocks;
    multiply_batched<<<static_cast<unsigned>(blocks), kProductThreads, 0, stream.raw()>>>(
        view_of(&in(call, 0), in(call, 0).info), view_of(&in(call, 1), in(call, 1).info),
        view_of(&out(call), info), info.shape[1], in(call, 0).info.shape[2], info.shape[2], all);
  }
};

}  // namespace

constexpr heddle_kernel kBatchedProduct = kernel_table<BatchedProduct>();

}  // namespace heddle::cuda
