/* heddle/abi/frame_ops.h - convolutions over frames. The rules of abi/ops.h hold.
 *
 * conv3d/1: x (N, T, H, W, C), weight (O, C, F, R, S) (USE_CONV2D layout), [bias (O)],
 *   [residual (N, T', H', W', O)]
 *   -> out (N, T', H', W', O) = conv(x) + bias + residual;
 *   T' = (T + front + back - F) / stride_t + 1, H' and W' as conv2d/1 has them.
 * Cross-correlation, zero padding, one group; all terms of an element are summed in f32 and rounded
 * once. Causal filters get the F - 1 frames before the first as part of x, or as front padding. */
#ifndef HEDDLE_ABI_FRAME_OPS_H
#define HEDDLE_ABI_FRAME_OPS_H

#include <stdint.h>

#define HEDDLE_OP_CONV3D "conv3d/1"
typedef struct heddle_conv3d_attrs {
  int32_t stride[3];  /* frames, height, width                 */
  int32_t padding[6]; /* front, top, left, back, bottom, right */
} heddle_conv3d_attrs;

#endif
