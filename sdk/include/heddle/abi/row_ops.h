/* heddle/abi/row_ops.h - ops that choose rows by numbers. The rules of abi/ops.h hold. What they
 * choose are rows that other ops look up (embedding/1), so shapes never depend on numbers.
 *
 * match_rows/1: scores (B, S, D), D >= 1
 *   -> places (B, S) i32, kept (B, S - R) i32, moved (B, R) i32, to (B, R) i32, best (B, S) f32.
 * Each of S rows goes best with one of D: best is its highest score, of equals the first. By
 * falling best, of equals in their order, the first R rows are moved, to rows `to` of D; the others
 * are kept. Of [kept | D] places is where each row then is: its own place, or S - R + its `to`. NaN
 * counts as the lowest score.
 *
 * merge_rows/1: base (B, D, C), rows (B, S, C), moved (B, R) i32, to (B, R) i32 -> out (B, D, C):
 * the mean of each base row and all rows that are moved to it, added up in their order. */
#ifndef HEDDLE_ABI_ROW_OPS_H
#define HEDDLE_ABI_ROW_OPS_H

#define HEDDLE_OP_MATCH_ROWS "match_rows/1"
#define HEDDLE_OP_MERGE_ROWS "merge_rows/1"

#endif
