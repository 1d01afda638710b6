// batched_product/1: a tile is some rows of one item; it has the item's second matrix as f32. The
// reference adds in double, the fast kernel in f32, in the same order.
#include <algorithm>

#include "fast.h"
#include "kernels.h"
#include "op_check_batch.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kProductRows = 64;  // of a tile

template <class Sum, class Base>
struct BatchedProduct : Base {
  static constexpr const char* op = HEDDLE_OP_BATCHED_PRODUCT;
  static void check(const heddle_op_call& call) { check_batched_product(call); }

  static void load_matrix(const heddle_view& view, std::int64_t item, float* to) {
    const heddle_tensor_info& info = view.info;
    for (std::int64_t k = 0; k < info.shape[1]; ++k)
      load_row(info.dtype, element(view, item * info.stride[0] + k * info.stride[1]), info.shape[2],
               1, to + k * info.shape[2]);
  }

  static void run(const Call& call) {
    const heddle_view &a = call.in(0), &b = call.in(1), &out = call.out();
    const std::int64_t rows = a.info.shape[1], inner = a.info.shape[2], width = b.info.shape[2];
    const std::int64_t tiles = (rows + kProductRows - 1) / kProductRows;
    call.parallel_for(a.info.shape[0] * tiles, [&](std::int64_t tile, Scratch& scratch) {
      call.check_wanted();
      const std::int64_t item = tile / tiles, first = tile % tiles * kProductRows;
      auto* matrix = scratch.take<float>(static_cast<std::size_t>(inner * width));
      auto* row = scratch.take<float>(static_cast<std::size_t>(inner));
      auto* sums = scratch.take<Sum>(static_cast<std::size_t>(width));
      auto* result = scratch.take<float>(static_cast<std::size_t>(width));
      load_matrix(b, item, matrix);
      for (std::int64_t i = first; i < std::min(rows, first + kProductRows); ++i) {
        load_row(a.info.dtype, element(a, item * a.info.stride[0] + i * a.info.stride[1]), inner, 1,
                 row);
        std::fill(sums, sums + width, Sum{0});
        for (std::int64_t k = 0; k < inner; ++k)
          for (std::int64_t n = 0; n < width; ++n)
            sums[n] += Sum{row[k]} * Sum{matrix[k * width + n]};
        for (std::int64_t n = 0; n < width; ++n) result[n] = static_cast<float>(sums[n]);
        store_row(out.info.dtype, result, width, 1,
                  element(out, item * out.info.stride[0] + i * out.info.stride[1]));
      }
    });
  }
};

}  // namespace

constexpr heddle_kernel kReferenceBatchedProduct =
    kernel_table<BatchedProduct<double, Reference>>();
constexpr heddle_kernel kFastBatchedProduct = kernel_table<BatchedProduct<float, Fast>>();

}  // namespace heddle::cpu
