/* heddle/abi/norm_ops.h - RMS norms that do more in the same pass. The rules of abi/ops.h hold.
 *
 * modulated_rms_norm/1: x (B, S, D), [scale (B|1, S|1, D)], [shift (B|1, S|1, D)]
 *   -> out = x / sqrt(mean(x^2) + eps) * scale + shift. In place. A norm whose sum with other
 * tokens is wanted has these as its shift.
 *
 * norm_rope_half/1: x (B, S, H, D), [weight (D)], cos (S, P), sin (S, P) -> out (B, S, H, D).
 *   RMS norm over D with weight (without weight: no norm), then rotation. Each `head` numbers of D
 *   turn by themselves: the pairs (i, pairs + i) with i < pairs, those of head g of D by column
 *   g pairs + i of row s of the tables: (a, b) -> (a cos - b sin, a sin + b cos). What lies behind
 *   2 pairs in a head stays. P = D / head pairs; the tables are f32. In place. norm_rope/1 turns
 *   neighbours (2 i, 2 i + 1). */
#ifndef HEDDLE_ABI_NORM_OPS_H
#define HEDDLE_ABI_NORM_OPS_H

#include <stdint.h>

#define HEDDLE_OP_MODULATED_RMS_NORM "modulated_rms_norm/1" /* attrs: heddle_norm_attrs */

#define HEDDLE_OP_NORM_ROPE_HALF "norm_rope_half/1"
typedef struct heddle_norm_rope_half_attrs {
  double eps;
  int32_t head, pairs; /* D is a multiple of head; 1 <= pairs, 2 pairs <= head */
} heddle_norm_rope_half_attrs;

#endif
