// gated_add/1 of rows in whole eights: a thread has the same eight columns of several rows on their
// way, and reads the gate that these rows share once.
#include "call.h"
#include "kernels.h"
#include "view.cuh"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kRows = 2;

struct Sum {
  View x, gate, y, out;
  Space space;
};

// grid: (pieces of a row, rows)
template <Lies kX, Lies kY>
__global__ void __launch_bounds__(kThreads) gated_add(const __grid_constant__ Sum sum) {
  const int axes = sum.space.rank - 1;
  const auto width = static_cast<int>(sum.space.shape[axes]);
  const std::int64_t rows = sum.space.count / width;
  const int column = static_cast<int>(blockIdx.x * kThreads + threadIdx.x) * kVectorSize;
  if (column >= width) return;
  const std::int64_t first = std::int64_t{blockIdx.y} * kRows;
  Piece<kX> x[kRows];
  Piece<kY> y[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t row = min(first + r, rows - 1);
    x[r].fetch(sum.x, offset_of(sum.x, sum.space, row, axes) + column, true);
    y[r].fetch(sum.y, offset_of(sum.y, sum.space, row, axes) + column, true);
  }
  std::int64_t at = offset_of(sum.gate, sum.space, first, axes);
  float gate[kVectorSize], a[kVectorSize], b[kVectorSize];
  load_vector(sum.gate.data, sum.gate.dtype, at + column, kVectorSize, gate);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (first + r >= rows) break;
    const std::int64_t own = offset_of(sum.gate, sum.space, first + r, axes);
    if (own != at)
      load_vector(sum.gate.data, sum.gate.dtype, (at = own) + column, kVectorSize, gate);
    x[r].get(a);
    y[r].get(b);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) a[i] = fmaf(gate[i], b[i], a[i]);
    Piece<kX>::put(sum.out, offset_of(sum.out, sum.space, first + r, axes) + column, a);
  }
}

Sum sum_of(const heddle_op_call& call) {
  const heddle_tensor_info& whole = out(call).info;
  Sum sum{view_of(call.in[0], whole), view_of(call.in[1], whole), view_of(call.in[2], whole),
          view_of(call.out[0], whole), space_of(whole)};
  collapse(sum.space, 1, {&sum.x, &sum.gate, &sum.y, &sum.out});
  return sum;
}

struct VectorGatedAdd {
  static constexpr const char* op = HEDDLE_OP_GATED_ADD;
  static constexpr const char* name = "vector";
  static constexpr std::int64_t kMostRows = 65535 * kRows;  // of a grid's second axis
  static void check(const heddle_op_call& call) { cpu::check_gated_add(call); }
  static std::size_t workspace(Device&, const heddle_op_call&) { return 0; }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    const heddle_tensor_info& whole = call.out[0]->info;
    const std::uint32_t last = whole.rank - 1;
    if (device.settings().reference_only || whole.rank == 0 || whole.shape[last] < kVectorSize ||
        whole.shape[last] % kVectorSize != 0)
      return 0;
    if (device::element_count(whole) / whole.shape[last] > kMostRows) return 0;
    for (std::uint32_t n = 0; n < 3; ++n) {
      const heddle_tensor_info& info = call.in[n]->info;
      // Every operand has its own columns.
      if (info.rank == 0 || info.shape[info.rank - 1] != whole.shape[last] ||
          info.stride[info.rank - 1] != 1)
        return 0;
    }
    return 10;
  }

  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const Sum sum = sum_of(call);
    if (sum.space.count == 0) return;
    const Lies x = how_lies(sum.x), y = how_lies(sum.y);
    // What other types are added to is of theirs, or f32.
    if (how_lies(sum.out) != x || x == Lies::kAnyhow)
      launch<Lies::kAnyhow, Lies::kAnyhow>(stream, sum);
    else if (x == Lies::kF32 && y == Lies::kBf16)
      launch<Lies::kF32, Lies::kBf16>(stream, sum);
    else if (x == Lies::kF32 && y == Lies::kF16)
      launch<Lies::kF32, Lies::kF16>(stream, sum);
    else if (x == Lies::kF32 && y == Lies::kF32)
      launch<Lies::kF32, Lies::kF32>(stream, sum);
    else if (x == Lies::kBf16 && y == x)
      launch<Lies::kBf16, Lies::kBf16>(stream, sum);
    else if (x == Lies::kF16 && y == x)
      launch<Lies::kF16, Lies::kF16>(stream, sum);
    else
      launch<Lies::kAnyhow, Lies::kAnyhow>(stream, sum);
  }

 private:
  template <Lies kX, Lies kY>
  static void launch(Stream& stream, const Sum& sum) {
    const std::int64_t width = sum.space.shape[sum.space.rank - 1];
    const dim3 grid(blocks_for(width, kThreads * kVectorSize),
                    blocks_for(sum.space.count / width, kRows));
    gated_add<kX, kY><<<grid, kThreads, 0, stream.raw()>>>(sum);
  }
};

}  // namespace

constexpr heddle_kernel kVectorGatedAdd = kernel_table<VectorGatedAdd>();

}  // namespace heddle::cuda
