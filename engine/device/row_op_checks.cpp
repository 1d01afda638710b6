#include "engine/device/row_op_checks.h"

namespace heddle::engine {

void check_match_rows(const Examined& e) {
  e.operands(1, 1, 5);
  const auto &scores = *e.in(0), &places = e.out(0), &kept = e.out(1), &moved = e.out(2),
             &to = e.out(3), &best = e.out(4);
  e.rank(scores, 3, "scores");
  e.require(scores.shape[2] > 0, "the scores have no columns");
  for (const auto* ids : {&places, &kept, &moved, &to}) {
    e.rank(*ids, 2, "rows' number");
    e.equal(ids->shape[0], scores.shape[0], "the batch sizes");
    e.require(ids->dtype == HEDDLE_I32, "the chosen rows are not i32");
  }
  e.same(places, best, "the shapes of places and best");
  e.same(moved, to, "the shapes of moved and to");
  e.equal(places.shape[1], scores.shape[1], "the numbers of rows and places");
  e.equal(kept.shape[1] + moved.shape[1], scores.shape[1], "the rows kept and moved, and all");
  e.require(best.dtype == HEDDLE_F32, "best is not f32");
}

void check_merge_rows(const Examined& e) {
  e.operands(4, 4, 1);
  const auto &base = *e.in(0), &rows = *e.in(1), &moved = *e.in(2), &to = *e.in(3);
  e.rank(base, 3, "base");
  e.rank(rows, 3, "rows");
  e.rank(moved, 2, "moved rows' number");
  e.same(base, e.out(), "the base's and the output's shape");
  e.same(moved, to, "the shapes of moved and to");
  e.require(rows.shape[0] == base.shape[0] && moved.shape[0] == base.shape[0],
            "the batch sizes differ");
  e.equal(rows.shape[2], base.shape[2], "the widths of base and rows");
  e.require(moved.dtype == HEDDLE_I32 && to.dtype == HEDDLE_I32, "the moved rows are not i32");
}

}  // namespace heddle::engine
