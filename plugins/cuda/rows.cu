// Rows chosen by numbers, and rows put together: the ops of abi/row_ops.h. Plain: a few thousand
// rows, beside attentions that they make shorter.
#include <cmath>

#include "call.h"
#include "kernels.h"
#include "view.cuh"

namespace heddle::cuda {

namespace {

constexpr int kRowThreads = 128;

__device__ std::int32_t& id_at(const View& view, std::int64_t item, std::int64_t index) {
  return static_cast<std::int32_t*>(view.data)[item * view.stride[0] + index * view.stride[1]];
}
__device__ float& best_at(const View& view, std::int64_t item, std::int64_t index) {
  return static_cast<float*>(view.data)[item * view.stride[0] + index * view.stride[1]];
}

// A block for each row: its highest score into best, the first column that has it into places.
__global__ void __launch_bounds__(kRowThreads)
    highest_scores(View scores, View places, View best, std::int64_t rows, std::int64_t columns) {
  __shared__ float highest[kRowThreads];
  __shared__ std::int32_t column[kRowThreads];
  const std::int64_t item = blockIdx.x / rows, row = blockIdx.x % rows;
  const std::int64_t from = item * scores.stride[0] + row * scores.stride[1];
  float most = -INFINITY;
  std::int32_t at = 0;
  for (std::int64_t i = threadIdx.x; i < columns; i += kRowThreads) {
    const float score = load(scores.data, scores.dtype, from + i);
    if (score > most) {
      most = score;
      at = static_cast<std::int32_t>(i);
    }
  }
  highest[threadIdx.x] = most;
  column[threadIdx.x] = at;
  __syncthreads();
  for (int half = kRowThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const float other = highest[threadIdx.x + half];
      const std::int32_t other_at = column[threadIdx.x + half];
      const bool is_higher = other > highest[threadIdx.x] ||
                             (other == highest[threadIdx.x] && other_at < column[threadIdx.x]);
      if (is_higher) {
        highest[threadIdx.x] = other;
        column[threadIdx.x] = other_at;
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    best_at(best, item, row) = highest[0];
    id_at(places, item, row) = column[0];
  }
}

// A block for each row: how many come before it, and what follows from that.
__global__ void __launch_bounds__(kRowThreads)
    order_rows(View places, View kept, View moved, View to, View best, std::int64_t rows,
               std::int64_t count) {
  __shared__ std::int32_t before[kRowThreads];
  const std::int64_t item = blockIdx.x / rows, row = blockIdx.x % rows;
  const float own = best_at(best, item, row);
  std::int32_t higher = 0;
  for (std::int64_t i = threadIdx.x; i < rows; i += kRowThreads) {
    const float other = best_at(best, item, i);
    higher += other > own || (other == own && i < row) ? 1 : 0;
  }
  before[threadIdx.x] = higher;
  __syncthreads();
  for (int half = kRowThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) before[threadIdx.x] += before[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  const std::int64_t rank = before[0];
  if (rank < count) {
    const std::int32_t column = id_at(places, item, row);
    id_at(moved, item, rank) = static_cast<std::int32_t>(row);
    id_at(to, item, rank) = column;
    id_at(places, item, row) = static_cast<std::int32_t>(rows - count + column);
  } else {
    id_at(kept, item, rank - count) = static_cast<std::int32_t>(row);
    id_at(places, item, row) = static_cast<std::int32_t>(rank - count);
  }
}

// A block for each row of the base.
__global__ void __launch_bounds__(kRowThreads)
    merge_rows(View base, View rows, View moved, View to, View out, std::int64_t bases,
               std::int64_t there, std::int64_t count, std::int64_t width) {
  const std::int64_t item = blockIdx.x / bases, row = blockIdx.x % bases;
  for (std::int64_t c = threadIdx.x; c < width; c += kRowThreads) {
    float sum = load(base.data, base.dtype, item * base.stride[0] + row * base.stride[1] + c);
    float parts = 1;
    for (std::int64_t i = 0; i < count; ++i) {
      if (id_at(to, item, i) != row) continue;
      const std::int64_t from = id_at(moved, item, i);
      if (from < 0 || from >= there) continue;
      sum = __fadd_rn(
          sum, load(rows.data, rows.dtype, item * rows.stride[0] + from * rows.stride[1] + c));
      parts += 1;
    }
    store(out.data, out.dtype, item * out.stride[0] + row * out.stride[1] + c,
          __fdiv_rn(sum, parts));
  }
}

View whole_view(const heddle_view& view) { return view_of(&view, view.info); }

struct MatchRows : Plain {
  static constexpr const char* op = HEDDLE_OP_MATCH_ROWS;
  static void check(const heddle_op_call& call) { cpu::check_match_rows(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const heddle_tensor_info& scores = in(call, 0).info;
    const std::int64_t rows = scores.shape[1], all = scores.shape[0] * rows;
    if (all == 0) return;
    const View places = whole_view(out(call, 0)), best = whole_view(out(call, 4));
    highest_scores<<<static_cast<unsigned>(all), kRowThreads, 0, stream.raw()>>>(
        whole_view(in(call, 0)), places, best, rows, scores.shape[2]);
    order_rows<<<static_cast<unsigned>(all), kRowThreads, 0, stream.raw()>>>(
        places, whole_view(out(call, 1)), whole_view(out(call, 2)), whole_view(out(call, 3)), best,
        rows, out(call, 2).info.shape[1]);
  }
};

struct MergeRows : Plain {
  static constexpr const char* op = HEDDLE_OP_MERGE_ROWS;
  static void check(const heddle_op_call& call) { cpu::check_merge_rows(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const heddle_tensor_info& base = in(call, 0).info;
    const std::int64_t all = base.shape[0] * base.shape[1];
    if (all == 0 || base.shape[2] == 0) return;
    merge_rows<<<static_cast<unsigned>(all), kRowThreads, 0, stream.raw()>>>(
        whole_view(in(call, 0)), whole_view(in(call, 1)), whole_view(in(call, 2)),
        whole_view(in(call, 3)), whole_view(out(call)), base.shape[1], in(call, 1).info.shape[1],
        in(call, 2).info.shape[1], base.shape[2]);
  }
};

}  // namespace

constexpr heddle_kernel kMatchRows = kernel_table<MatchRows>();
constexpr heddle_kernel kMergeRows = kernel_table<MergeRows>();

}  // namespace heddle::cuda
