// The kernels of this plugin, in one list. Constants; each is defined in the file of its group.
#pragma once

#include "heddle/abi/device.h"

namespace heddle::cpu {

extern const heddle_kernel kReferenceCopy, kReferenceFill;  // reference_copy.cpp
extern const heddle_kernel kReferenceAdd, kReferenceMul, kReferenceCombine,
    kReferenceScaleClamp;  // reference_elementwise.cpp
extern const heddle_kernel kReferenceActivation, kReferenceGatedActivation, kReferenceGatedAdd,
    kReferenceLeakyRelu, kReferenceRsqrt;
extern const heddle_kernel kReferenceLayerNorm, kReferenceRmsNorm,
    kReferenceModulatedNorm;  // reference_norm.cpp
extern const heddle_kernel kReferenceNormRope, kReferenceGroupNorm;
extern const heddle_kernel kReferenceRopeTable, kReferenceGridIds,
    kReferenceTimestepEmbedding;  // reference_table.cpp
extern const heddle_kernel kReferenceEmbedding, kReferenceRelativeBucket;
extern const heddle_kernel kReferenceMatchRows, kReferenceMergeRows;
extern const heddle_kernel kReferenceBatchedProduct, kFastBatchedProduct;  // batched_product.cpp
extern const heddle_kernel kReferenceGatedDeltaRule, kFastGatedDeltaRule;  // delta_rule.cpp
extern const heddle_kernel kReferenceModulatedRmsNorm, kFastModulatedRmsNorm,
    kReferenceNormRopeHalf, kFastNormRopeHalf;   // norm_ops.cpp
extern const heddle_kernel kReferenceAttention;  // reference_attention.cpp
extern const heddle_kernel kFp8Attention;        // attention_fp8.cpp
extern const heddle_kernel kReferenceLinear, kReferenceConv2d, kReferenceDepthwiseConv2d,
    kReferenceUpsampleNearest;                // reference_linear.cpp, _image.cpp
extern const heddle_kernel kReferenceConv3d;  // reference_frames.cpp

extern const heddle_kernel kFastAdd, kFastMul, kFastGatedAdd,
    kFastScaleClamp;  // fast_elementwise.cpp
extern const heddle_kernel kFastActivation, kFastGatedActivation, kFastCombine, kFastCopy,
    kFastLeakyRelu;
extern const heddle_kernel kFastLayerNorm, kFastRmsNorm, kFastModulatedNorm;  // fast_norm.cpp
extern const heddle_kernel kFastNormRope, kFastGroupNorm;
extern const heddle_kernel kInt8Linear;  // linear_int8.cpp
extern const heddle_kernel kFastAttention, kFastLinear, kFastConv2d, kFastConv3d,
    kFastDepthwiseConv2d;  // fast_attention.cpp, _linear.cpp, _image.cpp

// In builds with oneDNN only: onednn_linear.cpp, onednn_image.cpp
extern const heddle_kernel kOnednnLinear, kOnednnConv2d, kOnednnConv3d;

// NULL-terminated, as the device table wants it.
extern const heddle_kernel* const kKernels[];

}  // namespace heddle::cpu
