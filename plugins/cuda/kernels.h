// The kernels of this plugin, in one list. Constants; each is defined in the file of its group.
#pragma once

#include "heddle/abi/device.h"

namespace heddle::cuda {

extern const heddle_kernel kCopy, kFill;  // copy.cu
extern const heddle_kernel kAdd, kMul, kCombine, kScaleClamp, kActivation, kGatedActivation,
    kGatedAdd, kLeakyRelu, kRsqrt;  // elementwise.cu
extern const heddle_kernel kLayerNorm, kRmsNorm, kModulatedNorm, kModulatedRmsNorm, kNormRope,
    kGroupNorm;  // norm.cu
extern const heddle_kernel kRopeTable, kGridIds, kTimestepEmbedding, kEmbedding,
    kRelativeBucket;                                            // table.cu
extern const heddle_kernel kMatchRows, kMergeRows;              // rows.cu
extern const heddle_kernel kBatchedProduct;                     // batched_product.cu
extern const heddle_kernel kGatedDeltaRule;                     // delta_rule.cu
extern const heddle_kernel kNormRopeHalf, kVectorNormRopeHalf;  // norm_half.cu
extern const heddle_kernel kAttention;                          // attention.cu
extern const heddle_kernel kGemmAttention;                      // attention_gemm.cu: cuBLASLt
extern const heddle_kernel kFp8Attention;                       // attention_fp8.cu: Hopper alone
extern const heddle_kernel kLinear, kConv2d, kUpsampleNearest;  // gemm.cu
extern const heddle_kernel kMatmulLinear, kWidenedLinear;       // linear.cu: cuBLASLt
extern const heddle_kernel kFp8Linear;                          // linear_fp8.cu: the same in 8 bits
extern const heddle_kernel kInt8Linear;                         // linear_int8.cu: whole numbers
extern const heddle_kernel kVectorLayerNorm, kVectorRmsNorm, kVectorModulatedNorm,
    kVectorModulatedRmsNorm, kVectorNormRope;       // norm_vector.cu
extern const heddle_kernel kVectorGroupNorm;        // group_norm_vector.cu
extern const heddle_kernel kVectorGatedAdd;         // gated_add_vector.cu
extern const heddle_kernel kVectorGatedActivation;  // gated_activation_vector.cu
extern const heddle_kernel kFewConv2d;              // conv_few.cu
extern const heddle_kernel kPointConv2d;            // conv_point.cpp: cuBLASLt
extern const heddle_kernel kUnfoldedConv2d;         // conv_unfold.cu: cuBLASLt
extern const heddle_kernel kDepthwiseConv2d;        // conv_depthwise.cu
extern const heddle_kernel kHopperConv2d;           // conv_hopper.cu: Hopper alone
// In builds with cuDNN only: cudnn_attention.cpp, cudnn_conv.cpp
extern const heddle_kernel kCudnnAttention, kCudnnConv2d;

// NULL-terminated, as the device table wants it.
extern const heddle_kernel* const kKernels[];

}  // namespace heddle::cuda
