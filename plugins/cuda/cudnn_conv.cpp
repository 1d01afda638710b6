// conv2d/1 by cuDNN, with bias and residual in its epilogue: 16-bit operands, channels last as
// everything here. Small calls stay with our own kernel: the library takes a tenth of a second and
// more to prepare a shape.
#include "call.h"
#include "cudnn_plan.h"
#include "kernels.h"
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
  kShapes,    // N H W C, O R S, H' W'
  kPads = kShapes + 9,
  kSteps = kPads + 4,
  kXStride = kSteps + 2,
  kOutStride = kXStride + 3,
  kResidualStride = kOutStride + 3,  // 0 0 0: no residual
  kKeySize = kResidualStride + 3
};

void describe(CudnnGraph& graph, const Cudnn::Key& key) {
  const auto operands = static_cast<heddle_dtype>(key[kOperands]),
             result = static_cast<heddle_dtype>(key[kResult]);
  const std::int64_t* s = key.data() + kShapes;
  const std::int64_t n = s[0], h = s[1], w = s[2], c = s[3], o = s[4], r = s[5], across = s[6],
                     down = s[7], wide = s[8];
  const auto picture = [&](std::int64_t id, heddle_dtype dtype, std::int64_t channels,
                           std::int64_t height, std::int64_t width, Place at) {
    return graph.tensor(
        {id, dtype, {n, channels, height, width}, {key[at], 1, key[at + 1], key[at + 2]}});
  };
  const CudnnGraph::Part x = picture(kX, operands, c, h, w, kXStride);
  const CudnnGraph::Part filter =
      graph.tensor({kFilter, operands, {o, c, r, across}, {r * across * c, 1, across * c, c}});
  const bool biased = key[kBiasType] != 0, added = key[kResidualStride + 2] != 0;
  const auto between = [&](std::int64_t id) {
    return graph.tensor({id,
                         HEDDLE_F32,
                         {n, o, down, wide},
                         {down * wide * o, 1, wide * o, o},
                         CudnnTensor::Kind::kBetween});
  };
  const CudnnGraph::Part out = picture(kOut, result, o, down, wide, kOutStride);
  const CudnnGraph::Part sum = biased || added ? between(kSum) : out;
  const CudnnGraph::Convolution how{{key[kSteps], key[kSteps + 1]},
                                    {key[kPads], key[kPads + 1]},
                                    {key[kPads + 2], key[kPads + 3]}};
  graph.convolution(how, x, filter, sum);
  CudnnGraph::Part last = sum;
  if (biased) {
    const CudnnGraph::Part bias = graph.tensor(
        {kBias, static_cast<heddle_dtype>(key[kBiasType]), {1, o, 1, 1}, {o, 1, o, o}});
    last = added ? between(kBiased) : out;
    graph.pointwise(CUDNN_POINTWISE_ADD, sum, bias, last);
  }
  if (added)
    graph.pointwise(CUDNN_POINTWISE_ADD, last,
                    picture(kResidual, result, o, down, wide, kResidualStride), out);
}

// Empty: not for this library.
Cudnn::Key key_of(const Device& device, const heddle_op_call& call) {
  const auto& a = attrs<heddle_conv2d_attrs>(call);
  const heddle_tensor_info &x = in(call, 0).info, &weight = in(call, 1).info,
                           &whole = out(call).info;
  const heddle_view *bias = device::operand(call, 2), *residual = device::operand(call, 3);
  if (weight.layout != kChannelsLast ||
      (weight.dtype != HEDDLE_BF16 && weight.dtype != HEDDLE_F16) || x.dtype != weight.dtype)
    return {};
  // Tensor cores want the channels of a pixel in whole 16 bytes.
  if (weight.shape[1] % 8 != 0) return {};
  if (residual != nullptr && residual->info.dtype != whole.dtype) return {};
  const double terms = static_cast<double>(weight.shape[1] * weight.shape[2] * weight.shape[3]);
  if (2.0 * static_cast<double>(device::element_count(whole)) * terms <
      device.settings().cudnn_flops)
    return {};
  Cudnn::Key key(kKeySize, 0);
  key[kOp] = 'c';
  key[kOperands] = weight.dtype;
  key[kBiasType] = bias != nullptr ? bias->info.dtype : 0;
  key[kResult] = whole.dtype;
  const std::int64_t shapes[] = {x.shape[0],      x.shape[1],      x.shape[2],
                                 x.shape[3],      weight.shape[0], weight.shape[2],
                                 weight.shape[3], whole.shape[1],  whole.shape[2]};
  std::copy(std::begin(shapes), std::end(shapes), key.begin() + kShapes);
  std::copy(a.padding, a.padding + 4, key.begin() + kPads);
  std::copy(a.stride, a.stride + 2, key.begin() + kSteps);
  const auto strides = [&](const heddle_tensor_info& info, Place at) {
    // Of an axis of one element no step is taken; what stands there must only be possible.
    std::int64_t dense = info.shape[3];
    for (int axis = 2; axis >= 0; --axis) {
      const std::int64_t step = info.shape[axis] == 1 ? dense : info.stride[axis];
      if (step <= 0) return false;
      key[static_cast<std::size_t>(at + axis)] = step;
      dense = step * info.shape[axis];
    }
    return info.stride[3] == 1 || info.shape[3] == 1;
  };
  if (!strides(x, kXStride) || !strides(whole, kOutStride) ||
      (residual != nullptr && !strides(residual->info, kResidualStride)))
    return {};
  return key;
}

struct CudnnConv {
  static constexpr std::int32_t kFits = 20;
  static constexpr const char* op = HEDDLE_OP_CONV2D;
  static constexpr const char* name = "cudnn";
  static void check(const heddle_op_call& call) { cpu::check_conv2d(call); }

  // No plan is made where one of our own kernels is the one that is chosen.
  static const CudnnPlan* plan(Device& device, const heddle_op_call& call) {
    const bool is_ours = kFewConv2d.fits(handle(&device), &call) > kFits ||
                         kHopperConv2d.fits(handle(&device), &call) > kFits;
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
      if (!lies_at_16(bindings[i].data)) return launch_other(kConv2d, stream, call);
    stream.device().cudnn()->execute(stream.raw(), *found, {bindings, count}, workspace);
  }
};

}  // namespace

constexpr heddle_kernel kCudnnConv2d = kernel_table<CudnnConv>();

}  // namespace heddle::cuda
