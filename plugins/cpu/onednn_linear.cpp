// linear/1 by oneDNN: each tile of the output is one call. Every batch item is cut by itself and
// alike, so that an item's bytes do not depend on its neighbours.
#include <cstring>

#include "device.h"
#include "gemm.h"
#include "kernels.h"
#include "onednn_primitives.h"
#include "op_check.h"

namespace heddle::cpu {

namespace {

// The tiles of one item and their primitives: those in the last row of tiles and in the last column
// may be smaller.
class Tiles {
 public:
  // nullopt where oneDNN does not do this.
  static std::optional<Tiles> of(Device& device, const heddle_tensor_info& x,
                                 const heddle_tensor_info& weight, const heddle_tensor_info& out) {
    // Its blocks of rows are that long; the weight would have to be filled up to whole ones.
    constexpr std::int64_t kBlock = 32;
    if (weight.layout != kMatrixPairs || x.dtype != HEDDLE_BF16 || weight.shape[1] % kBlock != 0 ||
        weight.shape[1] == 0 || out.rank < 3 || out.shape[0] == 0)
      return std::nullopt;
    const std::int64_t rows = row_count(out) / out.shape[0];
    // Few rows are bound by reading the weight: ours does that once for all items.
    if (rows <= kBlockRows) return std::nullopt;
    Tiles tiles(rows, weight.shape[0]);
    for (const bool last_row : {false, true})
      for (const bool last_column : {false, true}) {
        const std::int64_t columns = last_column ? tiles.last_columns() : tiles.cut.tile_columns;
        const Primitive* primitive = device.primitives().gemm(
            {last_row ? tiles.last_rows() : tiles.cut.tile_rows, columns, weight.shape[1]});
        if (primitive == nullptr) return std::nullopt;
        tiles.primitives_[last_row][last_column] = primitive;
      }
    return tiles;
  }

  const Primitive& at(std::int64_t down, std::int64_t across) const {
    return *primitives_[down + 1 == cut.down][across + 1 == cut.across];
  }

  Cut cut;

 private:
  Tiles(std::int64_t rows, std::int64_t outputs) : cut(rows, outputs) {
    cut.tile_columns = std::min(cut.tile_columns, panel_count(outputs) * kPanelColumns);
    cut.tile_rows = std::min(cut.tile_rows, rows);
  }
  std::int64_t last_rows() const { return cut.rows - (cut.down - 1) * cut.tile_rows; }
  std::int64_t last_columns() const {
    return panel_count(cut.columns - (cut.across - 1) * cut.tile_columns) * kPanelColumns;
  }

  const Primitive* primitives_[2][2] = {};
};

// Rows of x one after the other: copied where they do not lie so.
struct DenseRows {
  const RowPlaces x;
  std::int64_t length;
  std::optional<std::int64_t> step;

  const void* at(std::int64_t row, std::int64_t rows, Scratch& scratch) const {
    if (step == length) return x.at(row, 0);
    const std::size_t bytes = static_cast<std::size_t>(length) * device::dtype_bytes(x.dtype());
    auto* copy = scratch.take<std::byte>(static_cast<std::size_t>(rows) * bytes);
    for (std::int64_t r = 0; r < rows; ++r)
      std::memcpy(copy + static_cast<std::size_t>(r) * bytes, x.at(row + r, 0), bytes);
    return copy;
  }
};

struct OnednnLinear {
  static constexpr const char* op = HEDDLE_OP_LINEAR;
  static constexpr const char* name = "onednn";
  static void check(const heddle_op_call& call) { check_linear(call); }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    const heddle_view *x = device::operand(call, 0), *weight = device::operand(call, 1);
    if (device.settings().reference_only || x == nullptr || weight == nullptr ||
        call.out_count != 1 || call.out[0] == nullptr || weight->info.rank != 2)
      return 0;
    return Tiles::of(device, x->info, weight->info, call.out[0]->info) ? 3 : 0;
  }

  static void run(const Call& call) {
    const heddle_view &x = call.in(0), &weight = call.in(1), &out = call.out();
    const std::optional<Tiles> tiles = Tiles::of(call.device(), x.info, weight.info, out.info);
    if (!tiles) device::fail(HEDDLE_UNSUPPORTED, "oneDNN has no kernel for this product");
    const Cut& cut = tiles->cut;
    const DenseRows left{RowPlaces(x), weight.info.shape[1], even_step(x.info)};
    const Right right{&weight, &call.device().vector()};
    const Finish finish(call, load_bias(call, call.maybe(2), cut.columns),
                        call.attrs<heddle_activation_attrs>().kind, call.maybe(3));
    call.parallel_for(out.info.shape[0] * cut.tiles(), [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t item = tile / cut.tiles(), down = tile % cut.tiles() % cut.down,
                         across = tile % cut.tiles() / cut.down;
      const std::int64_t row = down * cut.tile_rows, column = across * cut.tile_columns;
      const std::int64_t first = item * cut.rows + row;
      const std::int64_t rows = std::min(cut.tile_rows, cut.rows - row),
                         columns = std::min(cut.tile_columns, cut.columns - column),
                         padded = panel_count(columns) * kPanelColumns;
      auto* sums = scratch.take<float>(static_cast<std::size_t>(rows * padded));
      tiles->at(down, across)
          .run(left.at(first, rows, scratch), right.stored(column / kPanelColumns, 0), sums,
               scratch);
      finish.write(sums, padded, first, rows, column, columns, scratch);
    });
  }
};

}  // namespace

constexpr heddle_kernel kOnednnLinear = kernel_table<OnednnLinear>();

}  // namespace heddle::cpu
