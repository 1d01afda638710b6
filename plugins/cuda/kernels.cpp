#include "kernels.h"

#include "call.h"
#include "frame_kernels.h"

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
    &kLeakyRelu,
    &kRsqrt,
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
    &kMatchRows,
    &kMergeRows,
    &kAttention,
    &kLinear,
    &kBatchedProduct,
    &kGatedDeltaRule,
    &kModulatedRmsNorm,
    &kNormRopeHalf,
    &kConv2d,
    &kConv3d,
    &kUpsampleNearest,
    &kMatmulLinear,
    &kWidenedLinear,
    &kFp8Linear,
    &kInt8Linear,
    &kGemmAttention,
    &kFp8Attention,
    &kVectorLayerNorm,
    &kVectorRmsNorm,
    &kVectorModulatedNorm,
    &kVectorModulatedRmsNorm,
    &kVectorNormRope,
    &kVectorNormRopeHalf,
    &kVectorGatedAdd,
    &kVectorGatedActivation,
    &kFewConv2d,
    &kFewConv3d,
    &kSummedConv3d,
    &kHopperConv2d,
    &kHopperConv3d,
    &kDepthwiseConv2d,
    &kPointConv2d,
    &kUnfoldedConv2d,
    &kVectorGroupNorm,
#if defined(HEDDLE_WITH_CUDNN)
    &kCudnnAttention,
    &kCudnnConv2d,
    &kCudnnConv3d,
#endif
    nullptr,
};

void launch_other(const heddle_kernel& kernel, Stream& stream, const heddle_op_call& call,
                  void* workspace) {
  heddle_status* status = kernel.launch(
      handle(&stream.device()), reinterpret_cast<heddle_stream*>(&stream), &call, workspace);
  if (status == nullptr) return;
  const heddle_host* host = stream.device().host();
  const std::string text = host->status_message(status);
  const heddle_code code = host->status_code(status);
  host->status_free(status);
  throw device::Error(code, text);
}

}  // namespace heddle::cuda
