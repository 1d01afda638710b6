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
    nullptr,
};

}  // namespace heddle::cpu
