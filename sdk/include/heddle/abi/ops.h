/* heddle/abi/ops.h - the op catalogue: what a device can be asked to do.
 *
 * An op is a name with a revision, operands and an attribute struct. Rules for all of them:
 *   - Operands are strided views; shapes below are logical. Unless an op says "contiguous", any
 *     strides go, but the last axis of floating-point inputs and outputs has stride 1 (copy/1 is
 *     the exception).
 *   - Floating-point operands are f32, f16 or bf16 and may differ from each other; kernels
 *     accumulate in f32 or better and round once, on writing.
 *   - An output may be a slice of a larger tensor. Outputs never overlap inputs, except that
 *     elementwise ops (marked "in place") may write exactly onto an input of the same type and
 *     strides.
 *   - "B|1" is a size that is B or 1 and broadcasts. [x] marks an optional operand (NULL when
 *     absent).
 *   - The engine's catalogue (engine/device/op_catalog) checks ranks and sizes against this text
 *     and counts FLOPs and bytes; the plain loops in plugins/cpu/reference are the meaning. */
#ifndef HEDDLE_ABI_OPS_H
#define HEDDLE_ABI_OPS_H

#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t heddle_activation;
enum {
  HEDDLE_ACT_NONE = 0,
  HEDDLE_ACT_RELU = 1,
  HEDDLE_ACT_SILU = 2,       /* x / (1 + exp(-x))                                               */
  HEDDLE_ACT_GELU = 3,       /* x/2 (1 + erf(x / sqrt 2))                                       */
  HEDDLE_ACT_GELU_TANH = 4,  /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))                   */
  HEDDLE_ACT_QUICK_GELU = 5, /* x / (1 + exp(-1.702 x)), CLIP's                                */
  HEDDLE_ACT_TANH = 6
};

/* copy/1: out = in, same shape, any strides, any two types. Floats round to nearest even; to
 * integers they are truncated toward zero and saturate. */
#define HEDDLE_OP_COPY "copy/1"

/* Collectives: traced by the ranks of a group (see heddle_group), never given to a kernel: the
 * engine makes them of copies and add/1. Every rank ends up with the same out.
 *   - all_gather/1: in, the rank's rows along an axis -> out, the rows of all; the rank's begin at
 *     `begin`.
 *   - all_reduce/1: in -> out, same shape: the sum over the ranks, added up by rank.
 *   - all_to_all/1: every rank gives to each its part [part_begin, part_end) along one axis, and
 *     puts what it gets together along the other: its own rows begin there at `begin`. Tokens with
 *     all heads become all tokens with some heads, and back.
 * Of all three: ranks read in when they like and put the results into out when they come, so a
 * block writes to in no more, and has not touched out before. With keeps_own the rank's own part is
 * left out of it: what in holds there is not read, and the block itself writes it into out, before
 * or meanwhile. What is traced next and reads or writes nothing else of out runs beside the
 * exchange. */
#define HEDDLE_OP_ALL_GATHER "all_gather/1"
typedef struct heddle_all_gather_attrs {
  int64_t begin;
  int32_t axis;
} heddle_all_gather_attrs;
#define HEDDLE_OP_ALL_REDUCE "all_reduce/1"
#define HEDDLE_OP_ALL_TO_ALL "all_to_all/1"
typedef struct heddle_all_to_all_attrs {
  int64_t part_begin, part_end; /* along part_axis of the others' inputs: what this rank gets */
  int64_t begin;                /* along join_axis of all outputs: where this rank's rows go  */
  int32_t part_axis, join_axis;
  int32_t keeps_own, reserved;
} heddle_all_to_all_attrs;

/* fill/1: -> out. */
#define HEDDLE_OP_FILL "fill/1"
typedef struct heddle_fill_attrs {
  double value;
} heddle_fill_attrs;

/* add/1, mul/1: a, b -> out. Equal ranks; an axis of size 1 broadcasts. In place. */
#define HEDDLE_OP_ADD "add/1"
#define HEDDLE_OP_MUL "mul/1"

/* combine/1: x0 [x1 [x2 [x3]]] -> out = sum of coefficient[i] * x[i], all of one shape; summed in
 * f32 in the order of the operands. A zero coefficient still reads its operand. In place. */
#define HEDDLE_OP_COMBINE "combine/1"
typedef struct heddle_combine_attrs {
  double coefficient[4];
} heddle_combine_attrs;

/* scale_clamp/1: x -> out = min(max(x * scale + shift, low), high). In place. */
#define HEDDLE_OP_SCALE_CLAMP "scale_clamp/1"
typedef struct heddle_scale_clamp_attrs {
  double scale, shift, low, high;
} heddle_scale_clamp_attrs;

/* activation/1: x -> out = f(x). In place. */
#define HEDDLE_OP_ACTIVATION "activation/1"
typedef struct heddle_activation_attrs {
  heddle_activation kind;
} heddle_activation_attrs;

/* leaky_relu/1: x, [slope, which broadcasts to x] -> out = x > 0 ? x : x * slope. The attribute is
 * the slope where the operand is absent. In place. */
#define HEDDLE_OP_LEAKY_RELU "leaky_relu/1"
typedef struct heddle_leaky_relu_attrs {
  double slope;
} heddle_leaky_relu_attrs;

/* rsqrt/1: x -> out = 1 / sqrt(x), same shapes. In place. */
#define HEDDLE_OP_RSQRT "rsqrt/1"

/* gated_activation/1: a, b -> out = f(a) * b, same shapes. In place. */
#define HEDDLE_OP_GATED_ACTIVATION "gated_activation/1" /* attrs: heddle_activation_attrs */

/* layer_norm/1: x (..., D), [weight (D)], [bias (D)] -> out. Mean and biased variance over D. */
#define HEDDLE_OP_LAYER_NORM "layer_norm/1"
typedef struct heddle_norm_attrs {
  double eps;
} heddle_norm_attrs;

/* rms_norm/1: x (..., D), [weight (D)] -> out = x / sqrt(mean(x^2) + eps) * weight. */
#define HEDDLE_OP_RMS_NORM "rms_norm/1" /* attrs: heddle_norm_attrs */

/* modulated_norm/1: x (B, S, D), shift (B|1, 1, D), scale (B|1, 1, D)
 *   -> out = layer_norm(x) * (1 + scale) + shift. */
#define HEDDLE_OP_MODULATED_NORM "modulated_norm/1" /* attrs: heddle_norm_attrs */

/* gated_add/1: x (B, S, D), gate (B|1, 1, D), y (B, S, D) -> out = x + gate * y. In place on x. */
#define HEDDLE_OP_GATED_ADD "gated_add/1"

/* norm_rope/1: x (B, S, H, D), [weight (D)], [cos (S, D/2), sin (S, D/2)] -> out (B, S, H, D).
 * RMS norm over D with weight (without weight: no norm), then rotation of the pairs (2i, 2i+1) by
 * row s of the tables: (a, b) -> (a cos - b sin, a sin + b cos) (without tables: none). The tables
 * are f32. In place. */
#define HEDDLE_OP_NORM_ROPE "norm_rope/1" /* attrs: heddle_norm_attrs */

/* rope_table/1: ids (S, A) f32 -> cos (S, P), sin (S, P), f32, P = sum of dim[a]/2 over the A <= 4
 * axes, one axis after another: angle = id * theta^(-2i/dim[a]), i < dim[a]/2, computed in double
 * (as diffusers does on the CPU). */
#define HEDDLE_OP_ROPE_TABLE "rope_table/1"
typedef struct heddle_rope_table_attrs {
  int32_t axes, reserved;
  int32_t dim[4];
  double theta;
} heddle_rope_table_attrs;

/* grid_ids/1: -> out (T*H*W, 3) f32:
 *   row (t*H + h)*W + w is (t + offset[0], h + offset[1], w + offset[2]). */
#define HEDDLE_OP_GRID_IDS "grid_ids/1"
typedef struct heddle_grid_ids_attrs {
  int64_t size[3]; /* T, H, W */
  double offset[3];
} heddle_grid_ids_attrs;

/* timestep_embedding/1: t (N) f32 -> out (N, D), D even: with h = D/2,
 *   angle_i = t * scale * exp(-ln(max_period) * i / (h - shift)),
 *   out = [cos | sin] when cos_first, else [sin | cos].
 * The frequencies are computed in f32, as PyTorch does. */
#define HEDDLE_OP_TIMESTEP_EMBEDDING "timestep_embedding/1"
typedef struct heddle_timestep_embedding_attrs {
  double scale, max_period, shift;
  int32_t cos_first, reserved;
} heddle_timestep_embedding_attrs;

/* embedding/1: table (V, D), ids (...) i32 or i64 -> out (..., D). An id outside [0, V) fails the
 * launch. */
#define HEDDLE_OP_EMBEDDING "embedding/1"

/* relative_bucket/1: -> out (Q, K) i32: T5's bucket of position k - q. Source: T5 paper's code;
 * half the buckets are exact, the rest grow logarithmically up to max_distance; both directions
 * when bidirectional. */
#define HEDDLE_OP_RELATIVE_BUCKET "relative_bucket/1"
typedef struct heddle_relative_bucket_attrs {
  int32_t buckets, max_distance, bidirectional, reserved;
} heddle_relative_bucket_attrs;

/* attention/1: q (B, Q, H, D), k (B, K, H, D), v (B, K, H, E), [bias (B|1, H|1, Q, K)]
 *   -> out (B, Q, H, E) = softmax(capped(q k^T * scale) + bias) v for each head
 * causal: key j is seen by query i when j <= i + K - Q. cap: 0, or above it, and then capped(x) is
 * cap * tanh(x / cap), else x. */
#define HEDDLE_OP_ATTENTION "attention/1"
typedef struct heddle_attention_attrs {
  double scale;
  int32_t causal;
  float cap;
} heddle_attention_attrs;

/* linear/1: x (..., K), weight (N, K) (USE_LINEAR layout), [bias (N)], [residual (..., N)]
 *   -> out (..., N) = f(x weight^T + bias) + residual. */
#define HEDDLE_OP_LINEAR "linear/1" /* attrs: heddle_activation_attrs */

/* conv2d/1: x (N, H, W, C), weight (O, C, R, S) (USE_CONV2D layout), [bias (O)],
 *   [residual (N, H', W', O)]
 *   -> out (N, H', W', O) = conv(x) + bias + residual; H' = (H + top + bottom - R) / stride_h + 1
 * Cross-correlation, zero padding, one group. */
#define HEDDLE_OP_CONV2D "conv2d/1"
typedef struct heddle_conv2d_attrs {
  int32_t stride[2];  /* height, width            */
  int32_t padding[4]; /* top, left, bottom, right */
} heddle_conv2d_attrs;

/* depthwise_conv2d/1: x (N, H, W, C), weight (R, S, C), [bias (C)] -> out (N, H', W', C): each
 * channel by a filter of its own; sizes, strides and padding as conv2d/1 has them. */
#define HEDDLE_OP_DEPTHWISE_CONV2D "depthwise_conv2d/1" /* attrs: heddle_conv2d_attrs */

/* group_norm/1: x (N, H, W, C), weight (C), bias (C) -> out = f(normalised over H, W and each group
 * of C / groups channels). */
#define HEDDLE_OP_GROUP_NORM "group_norm/1"
typedef struct heddle_group_norm_attrs {
  double eps;
  int32_t groups;
  heddle_activation activation;
} heddle_group_norm_attrs;

/* upsample_nearest/1: x (N, H, W, C) -> out (N, f H, g W, C), f and g whole. */
#define HEDDLE_OP_UPSAMPLE_NEAREST "upsample_nearest/1"

#ifdef __cplusplus
}
#endif
#endif
