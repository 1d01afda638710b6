/* heddle/abi/batch_ops.h - products whose matrices are all computed. The rules of abi/ops.h hold.
 *
 * batched_product/1: a (B, M, K), b (B, K, N) -> out (B, M, N): a b for each of B. */
#ifndef HEDDLE_ABI_BATCH_OPS_H
#define HEDDLE_ABI_BATCH_OPS_H

#define HEDDLE_OP_BATCHED_PRODUCT "batched_product/1"

#endif
