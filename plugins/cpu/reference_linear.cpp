// linear/1: out = f(x weight^T + bias) + residual. Sums in double: the oracle of the fast kernels.
#include <algorithm>

#include "kernels.h"
#include "op_check.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

struct Linear : Reference {
  static constexpr const char* op = HEDDLE_OP_LINEAR;
  static void check(const heddle_op_call& call) { check_linear(call); }

  static std::int32_t fits(const Device&, const heddle_op_call& call) {
    const heddle_view* weight = device::operand(call, 1);
    return weight != nullptr && weight->info.layout == 0 ? 1 : 0;
  }

  static constexpr std::int64_t kTileRows = 32, kTileColumns = 128;

  static void run(const Call& call) {
    const heddle_activation kind = call.attrs<heddle_activation_attrs>().kind;
    const heddle_view &x = call.in(0), &weight = call.in(1), &out = call.out();
    if (weight.info.layout != 0)
      device::fail(HEDDLE_UNSUPPORTED, "the reference reads plain weights only, got ",
                   device::describe(weight.info));
    const heddle_view* residual = call.maybe(3);
    const std::int64_t m = row_count(out.info), n = weight.info.shape[0], k = weight.info.shape[1];
    const float* bias = load_vector(call.maybe(2), call.stream().call_scratch());
    const std::int64_t across = (n + kTileColumns - 1) / kTileColumns;
    call.parallel_for(
        (m + kTileRows - 1) / kTileRows * across, [&](std::int64_t tile, Scratch& scratch) {
          const std::int64_t first_row = tile / across * kTileRows,
                             first = tile % across * kTileColumns;
          const std::int64_t rows = std::min(kTileRows, m - first_row),
                             columns = std::min(kTileColumns, n - first);
          auto* inputs = scratch.take<float>(static_cast<std::size_t>(rows * k));
          auto* filter = scratch.take<float>(static_cast<std::size_t>(k));
          auto* sums = scratch.take<double>(static_cast<std::size_t>(rows * columns));
          for (std::int64_t r = 0; r < rows; ++r)
            load_row(x.info.dtype, element(x, row_offset(x.info, x.info, first_row + r)), k, 1,
                     inputs + r * k);
          for (std::int64_t c = 0; c < columns; ++c) {
            load_row(weight.info.dtype, element(weight, (first + c) * weight.info.stride[0]), k, 1,
                     filter);
            for (std::int64_t r = 0; r < rows; ++r)
              sums[r * columns + c] = dot(inputs + r * k, filter, k);
          }
          auto* result = scratch.take<float>(static_cast<std::size_t>(columns));
          for (std::int64_t r = 0; r < rows; ++r) {
            const Piece piece{first_row + r, first, columns};
            const float* added =
                residual != nullptr ? load_piece(*residual, out.info, piece, scratch) : nullptr;
            for (std::int64_t c = 0; c < columns; ++c) {
              const double y =
                  activate(kind, sums[r * columns + c] + (bias != nullptr ? bias[first + c] : 0));
              result[c] = static_cast<float>(y + (added != nullptr ? added[c] : 0));
            }
            store_piece(out, piece, result);
          }
        });
  }
};

}  // namespace

constexpr heddle_kernel kReferenceLinear = kernel_table<Linear>();

}  // namespace heddle::cpu
