// conv3d/1 by cuDNN, with bias and residual in its epilogue: all frames of the filter are one
// product, so sums are neither written nor read in between. 16-bit operands, channels last. Small
// calls stay with our own kernels, as those of conv2d/1 do (cudnn_conv.cpp).
#include <algorithm>

#include "call.h"
#include "cudnn_plan.h"
#include "frame_kernels.h"
#include "layouts.h"

namespace heddle::cuda {

namespace {

enum Id : std::int64_t { kX = 1, kFilter, kBias, kResidual, kOut, kSum, kBiased };

// The key: where things stand in it.
enum Place {
  kOp,
  kOperands,  // dtype of x and filter
  kBiasType,  // 0: no bias
  kResult,    // dtype of out and residual
  kShapes,    // N T H W C, O F R S, T' H' W'
  kPads = kShapes + 12,
  kSteps = kPads + 6,
  kXStride = kSteps + 3,  // of N T H W
  kOutStride = kXStride + 4,
  kResidualStride = kOutStride + 4,  // zeros: no residual
  kKeySize = kResidualStride + 4
};

void describe(CudnnGraph& graph, const Cudnn::Key& key) {
  const auto operands = static_cast<heddle_dtype>(key[kOperands]),
             result = static_cast<heddle_dtype>(key[kResult]);
  const std::int64_t* s = key.data() + kShapes;
  const std::int64_t n = s[0], c = s[4], o = s[5];
  const auto clip = [&](std::int64_t id, heddle_dtype dtype, std::int64_t channels,
                        const std::int64_t* size, Place at) {
    return graph.tensor({id,
                         dtype,
                         {n, channels, size[0], size[1], size[2]},
                         {key[at], 1, key[at + 1], key[at + 2], key[at + 3]}});
  };
  const CudnnGraph::Part x = clip(kX, operands, c, s + 1, kXStride);
  const std::int64_t frames = s[6], down = s[7], across = s[8];
  const CudnnGraph::Part filter =
      graph.tensor({kFilter,
                    operands,
                    {o, c, frames, down, across},
                    {frames * down * across * c, 1, down * across * c, across * c, c}});
  const bool biased = key[kBiasType] != 0, added = key[kResidualStride + 3] != 0;
  const std::int64_t* made = s + 9;
  const auto between = [&](std::int64_t id) {
    const std::int64_t row = made[2] * o, frame = made[1] * row;
    return graph.tensor({id,
                         HEDDLE_F32,
                         {n, o, made[0], made[1], made[2]},
                         {made[0] * frame, 1, frame, row, o},
                         CudnnTensor::Kind::kBetween});
  };
  const CudnnGraph::Part out = clip(kOut, result, o, made, kOutStride);
  const CudnnGraph::Part sum = biased || added ? between(kSum) : out;
  const auto pads = key.begin() + kPads, steps = key.begin() + kSteps;
  graph.convolution({{steps, steps + 3}, {pads, pads + 3}, {pads + 3, pads + 6}}, x, filter, sum);
  CudnnGraph::Part last = sum;
  if (biased) {
    const CudnnGraph::Part bias = graph.tensor(
        {kBias, static_cast<heddle_dtype>(key[kBiasType]), {1, o, 1, 1, 1}, {o, 1, o, o, o}});
    last = added ? between(kBiased) : out;
    graph.pointwise(CUDNN_POINTWISE_ADD, sum, bias, last);
  }
  if (added)
    graph.pointwise(CUDNN_POINTWISE_ADD, last, clip(kResidual, result, o, made, kResidualStride),
                    out);
}

// Strides of items, frames, rows and pixels. Of an axis of one element no step is taken; what
// stands there must only be possible.
bool put_strides(Cudnn::Key& key, const heddle_tensor_info& info, Place at) {
  std::int64_t dense = info.shape[4];
  for (int axis = 3; axis >= 0; --axis) {
    const std::int64_t step = info.shape[axis] == 1 ? dense : info.stride[axis];
    if (step <= 0) return false;
    key[static_cast<std::size_t>(at + axis)] = step;
    dense = step * info.shape[axis];
  }
  return info.stride[4] == 1 || info.shape[4] == 1;
}

// Whether the library is worth its plan, and can count the elements.
bool is_of_its_size(const Device& device, const heddle_op_call& call) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 31;
  const heddle_tensor_info& weight = in(call, 1).info;
  double flops = 2.0 * static_cast<double>(device::element_count(out(call).info));
  for (int axis = 1; axis < 5; ++axis) flops *= static_cast<double>(weight.shape[axis]);
  return flops >= device.settings().cudnn_flops &&
         device::element_count(in(call, 0).info) < kMostElements &&
         device::element_count(out(call).info) < kMostElements;
}

// Empty: not for this library.
Cudnn::Key key_of(const Device& device, const heddle_op_call& call) {
  const auto& a = attrs<heddle_conv3d_attrs>(call);
  const heddle_tensor_info &x = in(call, 0).info, &weight = in(call, 1).info,
                           &whole = out(call).info;
  const heddle_view *bias = device::operand(call, 2), *residual = device::operand(call, 3);
  if (weight.layout != kChannelsLast ||
      (weight.dtype != HEDDLE_BF16 && weight.dtype != HEDDLE_F16) || x.dtype != weight.dtype)
    return {};
  // Tensor cores want the channels of a pixel in whole 16 bytes.
  if (weight.shape[1] % 8 != 0 || !is_of_its_size(device, call)) return {};
  if (residual != nullptr && residual->info.dtype != whole.dtype) return {};
  Cudnn::Key key(kKeySize, 0);
  key[kOp] = 'f';
  key[kOperands] = weight.dtype;
  key[kBiasType] = bias != nullptr ? bias->info.dtype : 0;
  key[kResult] = whole.dtype;
  const auto shapes = key.begin() + kShapes;
  std::copy(x.shape, x.shape + 5, shapes);
  shapes[5] = weight.shape[0];
  std::copy(weight.shape + 2, weight.shape + 5, shapes + 6);
  std::copy(whole.shape + 1, whole.shape + 4, shapes + 9);
  std::copy(a.padding, a.padding + 6, key.begin() + kPads);
  std::copy(a.stride, a.stride + 3, key.begin() + kSteps);
  if (!put_strides(key, x, kXStride) || !put_strides(key, whole, kOutStride) ||
      (residual != nullptr && !put_strides(key, residual->info, kResidualStride)))
    return {};
  return key;
}

struct CudnnConv3d {
  static constexpr std::int32_t kFits = 20;
  static constexpr const char* op = HEDDLE_OP_CONV3D;
  static constexpr const char* name = "cudnn";
  static void check(const heddle_op_call& call) { cpu::check_conv3d(call); }

  // No plan is made where one of our own kernels is the one that is chosen.
  static const CudnnPlan* plan(Device& device, const heddle_op_call& call) {
    const bool is_ours = sums_frames() || kFewConv3d.fits(handle(&device), &call) > kFits ||
                         kHopperConv3d.fits(handle(&device), &call) > kFits;
    const Cudnn::Key key =
        device.cudnn() != nullptr && !is_ours ? key_of(device, call) : Cudnn::Key();
    return key.empty() ? nullptr : device.cudnn()->plan(key, describe);
  }
  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    return plan(device, call) != nullptr ? kFits : 0;
  }
  static std::size_t workspace(Device& device, const heddle_op_call& call) {
    const CudnnPlan* found = plan(device, call);
    return found != nullptr ? found->workspace_bytes() : 0;
  }
  static void run(Stream& stream, const heddle_op_call& call, void* workspace) {
    const CudnnPlan* found = plan(stream.device(), call);
    if (found == nullptr)
      device::fail(HEDDLE_UNSUPPORTED, "does not fit ", device::describe(in(call, 0).info));
    Cudnn::Binding bindings[5] = {
        {kX, in(call, 0).data}, {kFilter, in(call, 1).data}, {kOut, out(call).data}};
    std::size_t count = 3;
    if (const heddle_view* bias = device::operand(call, 2)) bindings[count++] = {kBias, bias->data};
    if (const heddle_view* residual = device::operand(call, 3))
      bindings[count++] = {kResidual, residual->data};
    for (std::size_t i = 0; i < count; ++i)
      if (!lies_at_16(bindings[i].data)) return launch_other(kConv3d, stream, call);
    stream.device().cudnn()->execute(stream.raw(), *found, {bindings, count}, workspace);
  }
};

}  // namespace

constexpr heddle_kernel kCudnnConv3d = kernel_table<CudnnConv3d>();

}  // namespace heddle::cuda
