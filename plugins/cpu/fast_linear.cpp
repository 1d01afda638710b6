// linear/1 on panels of the weight; a plain weight is turned tile by tile.
#include "fast.h"
#include "gemm.h"
#include "kernels.h"
#include "op_check.h"

namespace heddle::cpu {

namespace {

// Rows of x along its last axis.
struct Rows {
  const RowPlaces x;
  const VectorKernels& vector;

  void pack(std::int64_t row, std::int64_t rows, std::int64_t k0, std::int64_t k,
            std::int64_t block_rows, float* packed, Scratch& scratch) const {
    const Scratch::Frame frame(scratch);
    const float* from[kBlockRows];
    const bool plain = x.dtype() == HEDDLE_F32;
    auto* widened = plain ? nullptr : scratch.take<float>(static_cast<std::size_t>(rows * k));
    for (std::int64_t r = 0; r < block_rows; ++r) {
      if (r >= rows) {  // repeated; what comes of them is never written
        from[r] = from[0];
        continue;
      }
      const std::byte* at = x.at(row + r, k0);
      from[r] = plain ? reinterpret_cast<const float*>(at) : widened + r * k;
      if (!plain) vector.widen(x.dtype(), at, k, widened + r * k);
    }
    (block_rows == kFewRows ? vector.pack_few : vector.pack)(from, k, packed);
  }
};

struct FastLinear : Fast {
  static constexpr const char* op = HEDDLE_OP_LINEAR;
  static void check(const heddle_op_call& call) { check_linear(call); }

  static std::int32_t fits(const Device& device, const heddle_op_call& call) {
    const heddle_view* weight = device::operand(call, 1);
    const bool known = weight != nullptr && (weight->info.layout == kPlainLayout ||
                                             is_matrix_layout(weight->info.layout));
    return known ? Fast::fits(device, call) : 0;
  }

  static void run(const Call& call) {
    const VectorKernels& vector = call.device().vector();
    const heddle_view& weight = call.in(1);
    const std::int64_t outputs = weight.info.shape[0], length = weight.info.shape[1];
    const Rows left{RowPlaces(call.in(0)), vector};
    const Right right{&weight, &vector};
    const Finish finish(call, load_bias(call, call.maybe(2), outputs),
                        call.attrs<heddle_activation_attrs>().kind, call.maybe(3));
    const Cut cut(
        row_count(call.out().info), outputs,
        device::is_compute_float(weight.info.dtype) ? Cut::Widening::kCheap : Cut::Widening::kSlow);
    call.parallel_for(cut.tiles(), [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t row = tile % cut.down * cut.tile_rows,
                         column = tile / cut.down * cut.tile_columns;
      const std::int64_t rows = std::min(cut.tile_rows, cut.rows - row),
                         columns = std::min(cut.tile_columns, cut.columns - column);
      const std::int64_t padded = panel_count(columns) * kPanelColumns;
      auto* sums = scratch.take<float>(static_cast<std::size_t>(cut.tile_rows * padded));
      multiply_tile(vector, left, right, row, rows, column / kPanelColumns, padded, length, sums,
                    scratch);
      finish.write(sums, padded, row, rows, column, columns, scratch);
    });
  }
};

}  // namespace

constexpr heddle_kernel kFastLinear = kernel_table<FastLinear>();

}  // namespace heddle::cpu
