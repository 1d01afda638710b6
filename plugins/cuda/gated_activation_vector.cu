// gated_activation/1 of rows in whole eights, of one 16-bit type: a thread has the same eight
// columns of several rows on their way.
#include "call.h"
#include "kernels.h"
#include "view.cuh"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kRows = 2;

struct Gated {
  View x, y, out;
  Space space;
  std::int32_t activation;
};

// grid: (pieces of a row, rows). kActivation -1: as the call says.
template <Lies kLies, int kActivation>
__global__ void __launch_bounds__(kThreads) gate(const __grid_constant__ Gated gated) {
  const int axes = gated.space.rank - 1;
  const auto width = static_cast<int>(gated.space.shape[axes]);
  const std::int64_t rows = gated.space.count / width;
  const int column = static_cast<int>(blockIdx.x * kThreads + threadIdx.x) * kVectorSize;
  if (column >= width) return;
  const std::int64_t first = std::int64_t{blockIdx.y} * kRows;
  Piece<kLies> x[kRows], y[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t row = min(first + r, rows - 1);
    x[r].fetch(gated.x, offset_of(gated.x, gated.space, row, axes) + column, true);
    y[r].fetch(gated.y, offset_of(gated.y, gated.space, row, axes) + column, true);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (first + r >= rows) break;
    float a[kVectorSize], b[kVectorSize];
    x[r].get(a);
    y[r].get(b);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i)
      a[i] = activate(kActivation < 0 ? gated.activation : kActivation, a[i]) * b[i];
    Piece<kLies>::put(gated.out, offset_of(gated.out, gated.space, first + r, axes) + column, a);
  }
}

struct VectorGatedActivation {
  static constexpr const char* op = HEDDLE_OP_GATED_ACTIVATION;
  static constexpr const char* name = "vector";
  static constexpr std::int64_t kMostRows = 65535 * kRows;  // of a grid's second axis
  static void check(const heddle_op_call& call) { cpu::check_gated_activation(call); }
  static std::size_t workspace(Device&, const heddle_op_call&) { return 0; }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    const heddle_tensor_info& whole = call.out[0]->info;
    const std::uint32_t last = whole.rank - 1;
    if (device.settings().reference_only || whole.rank == 0 || whole.shape[last] < kVectorSize ||
        whole.shape[last] % kVectorSize != 0 ||
        (whole.dtype != HEDDLE_BF16 && whole.dtype != HEDDLE_F16) ||
        device::element_count(whole) / whole.shape[last] > kMostRows)
      return 0;
    for (std::uint32_t n = 0; n < 2; ++n) {
      const heddle_tensor_info& info = call.in[n]->info;
      if (info.dtype != whole.dtype || info.rank == 0 ||
          info.shape[info.rank - 1] != whole.shape[last] || info.stride[info.rank - 1] != 1)
        return 0;
    }
    return 10;
  }

  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const heddle_tensor_info& whole = out(call).info;
    Gated gated{view_of(call.in[0], whole), view_of(call.in[1], whole), view_of(call.out[0], whole),
                space_of(whole), attrs<heddle_activation_attrs>(call).kind};
    collapse(gated.space, 1, {&gated.x, &gated.y, &gated.out});
    if (gated.space.count == 0) return;
    const Lies lies = how_lies(gated.out);
    if (how_lies(gated.x) != lies || how_lies(gated.y) != lies || lies == Lies::kAnyhow)
      return launch_other(kGatedActivation, stream, call);
    if (lies == Lies::kBf16)
      launch<Lies::kBf16>(stream, gated);
    else
      launch<Lies::kF16>(stream, gated);
  }

 private:
  template <Lies kLies>
  static void launch(Stream& stream, const Gated& gated) {
    const std::int64_t width = gated.space.shape[gated.space.rank - 1];
    const dim3 grid(blocks_for(width, kThreads * kVectorSize),
                    blocks_for(gated.space.count / width, kRows));
    if (gated.activation == HEDDLE_ACT_GELU)
      gate<kLies, HEDDLE_ACT_GELU><<<grid, kThreads, 0, stream.raw()>>>(gated);
    else if (gated.activation == HEDDLE_ACT_SILU)
      gate<kLies, HEDDLE_ACT_SILU><<<grid, kThreads, 0, stream.raw()>>>(gated);
    else
      gate<kLies, -1><<<grid, kThreads, 0, stream.raw()>>>(gated);
  }
};

}  // namespace

constexpr heddle_kernel kVectorGatedActivation = kernel_table<VectorGatedActivation>();

}  // namespace heddle::cuda
