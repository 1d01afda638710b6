#include "kernels.h"

namespace heddle::cuda {

constexpr const heddle_kernel* const kKernels[] = {
    &kCopy,
    &kFill,
    &kAdd,
    &kMul,
    &kCombine,
    &kScaleClamp,
    &kActivation,
    &kGatedActivation,
    &kGatedAdd,
    &kLayerNorm,
    &kRmsNorm,
    &kModulatedNorm,
    &kNormRope,
    &kGroupNorm,
    &kRopeTable,
    &kGridIds,
    &kTimestepEmbedding,
    &kEmbedding,
    &kRelativeBucket,
    &kAttention,
    &kLinear,
    &kConv2d,
    &kUpsampleNearest,
    &kMatmulLinear,
    nullptr,
};

}  // namespace heddle::cuda
