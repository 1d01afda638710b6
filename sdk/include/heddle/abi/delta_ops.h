/* heddle/abi/delta_ops.h - linear attention with a state. The rules of abi/ops.h hold.
 *
 * gated_delta_rule/1: qk (B, S, 2 K, D), v (B, S, H, E), gates (B, S, 2 H), log_rate (H),
 *   shift (H), [before] (B, H, D, E) f32 -> out (B, S, H, E), state (B, H, D, E) f32.
 * qk has K heads of queries, behind them K of keys; gates has a decay for each of H heads, behind
 * them a share. H is a multiple of K: head h reads query and key h / (H / K), each divided by the
 * root of the sum of its squares and eps; the query is multiplied by scale besides. Each head has a
 * matrix M (D x E), at first `before`, or 0 without it. For one token after the other
 *   M = exp(-exp(log_rate) softplus(decay + shift)) M
 *   M = M + k^T (sigmoid(share) (v - k M))
 *   out = q M
 * and state is M behind the last one. */
#ifndef HEDDLE_ABI_DELTA_OPS_H
#define HEDDLE_ABI_DELTA_OPS_H

#define HEDDLE_OP_GATED_DELTA_RULE "gated_delta_rule/1"
typedef struct heddle_gated_delta_rule_attrs {
  double eps, scale;
} heddle_gated_delta_rule_attrs;

#endif
