#include "op_check_rows.h"

#include "op_operands.h"

namespace heddle::cpu {

using namespace operands;

void check_match_rows(const heddle_op_call& call) {
  const heddle_tensor_info& scores = need(call, 0, "scores");
  require_rank(scores, "scores", 3);
  const std::int64_t items = scores.shape[0], rows = scores.shape[1];
  require(scores.shape[2] > 0, "scores is ", describe(scores), ", has to have columns");
  const heddle_tensor_info& moved = result(call, 2, "moved", Elements::kI32);
  require_rank(moved, "moved", 2);
  const std::int64_t count = moved.shape[1];
  require(count <= rows, "moved is ", describe(moved), ", more than the rows of scores ",
          describe(scores));
  require_shape(moved, "moved", {items, count});
  require_shape(result(call, 0, "places", Elements::kI32), "places", {items, rows});
  require_shape(result(call, 1, "kept", Elements::kI32), "kept", {items, rows - count});
  require_shape(result(call, 3, "to", Elements::kI32), "to", {items, count});
  require_shape(result(call, 4, "best", Elements::kF32), "best", {items, rows});
}

void check_merge_rows(const heddle_op_call& call) {
  const heddle_tensor_info &base = need(call, 0, "base"), &rows = need(call, 1, "rows");
  require_rank(base, "base", 3);
  require_rank(rows, "rows", 3);
  require_shape(rows, "rows", {base.shape[0], rows.shape[1], base.shape[2]});
  const heddle_tensor_info& moved = need(call, 2, "moved", Elements::kI32);
  require_rank(moved, "moved", 2);
  require_shape(moved, "moved", {base.shape[0], moved.shape[1]});
  require_shape(need(call, 3, "to", Elements::kI32), "to", {base.shape[0], moved.shape[1]});
  require_shape(result(call), "out", {base.shape[0], base.shape[1], base.shape[2]});
}

}  // namespace heddle::cpu
