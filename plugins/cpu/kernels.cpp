#include "kernels.h"

namespace heddle::cpu {

constexpr const heddle_kernel* const kKernels[] = {
    &kReferenceCopy,
    &kReferenceFill,
    &kReferenceAdd,
    &kReferenceMul,
    &kReferenceCombine,
    &kReferenceScaleClamp,
    &kReferenceActivation,
    &kReferenceGatedActivation,
    &kReferenceLeakyRelu,
    &kReferenceLayerNorm,
    &kReferenceRmsNorm,
    &kReferenceModulatedNorm,
    &kReferenceGatedAdd,
    &kReferenceNormRope,
    &kReferenceRopeTable,
    &kReferenceGridIds,
    &kReferenceTimestepEmbedding,
    &kReferenceEmbedding,
    &kReferenceRelativeBucket,
    &kReferenceAttention,
    &kReferenceLinear,
    &kReferenceConv2d,
    &kReferenceGroupNorm,
    &kReferenceUpsampleNearest,
    &kFastAdd,
    &kFastMul,
    &kFastGatedAdd,
    &kFastScaleClamp,
    &kFastActivation,
    &kFastGatedActivation,
    &kFastLeakyRelu,
    &kFastCombine,
    &kFastCopy,
    &kFastLayerNorm,
    &kFastRmsNorm,
    &kFastModulatedNorm,
    &kFastNormRope,
    &kFastGroupNorm,
    &kFastAttention,
    &kFastLinear,
    &kFastConv2d,
#if defined(HEDDLE_WITH_ONEDNN)
    &kOnednnLinear,
    &kOnednnConv2d,
#endif
    nullptr,
};

}  // namespace heddle::cpu
