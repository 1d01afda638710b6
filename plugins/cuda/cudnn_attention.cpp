// attention/1 by cuDNN: one fused operation, for 16-bit operands without bias or causal mask. Small
// calls stay with our own kernel: the library takes a tenth of a second and more to prepare a
// shape.
#include "call.h"
#include "cudnn_plan.h"
#include "kernels.h"

namespace heddle::cuda {

namespace {

enum Id : std::int64_t { kQ = 1, kK, kV, kScale, kOut };

constexpr std::int64_t kLongestHead = 256;

// Our own kernel takes ten times as long as the library's at any size, convolutions less than that:
// so of the FLOPs from which those are the library's this share is enough.
constexpr double kShareOfFlops = 1.0 / 64;

// dtype, then shape and strides of q, k, v and out in the op's order of axes: B, S, H, D.
constexpr std::size_t kOperand = 8;

void describe(CudnnGraph& graph, const Cudnn::Key& key) {
  const auto operand = [&](std::int64_t id, std::size_t place) {
    const std::int64_t* shape = key.data() + 2 + place * kOperand;
    const std::int64_t* stride = shape + 4;
    return graph.tensor({id,
                         static_cast<heddle_dtype>(key[1]),
                         {shape[0], shape[2], shape[1], shape[3]},
                         {stride[0], stride[2], stride[1], stride[3]}});
  };
  const CudnnGraph::Part scale =
      graph.tensor({kScale, HEDDLE_F32, {1, 1, 1, 1}, {1, 1, 1, 1}, CudnnTensor::Kind::kNumber});
  const CudnnGraph::Part q = operand(kQ, 0), k = operand(kK, 1), v = operand(kV, 2),
                         out = operand(kOut, 3);
  graph.attention(q, k, v, scale, out);
}

// Empty: not for this library.
Cudnn::Key key_of(const Device& device, const heddle_op_call& call) {
  if (device::operand(call, 3) != nullptr || attrs<heddle_attention_attrs>(call).causal != 0 ||
      attrs<heddle_attention_attrs>(call).cap != 0)
    return {};
  const heddle_tensor_info &q = in(call, 0).info, &k = in(call, 1).info, &v = in(call, 2).info,
                           &whole = out(call).info;
  const std::int64_t d = q.shape[3];
  if (d % 8 != 0 || d > kLongestHead || v.shape[3] != d ||
      (q.dtype != HEDDLE_BF16 && q.dtype != HEDDLE_F16))
    return {};
  if (4.0 * static_cast<double>(device::element_count(q)) * static_cast<double>(k.shape[1]) <
      device.settings().cudnn_flops * kShareOfFlops)
    return {};
  Cudnn::Key key{'a', q.dtype};
  for (const heddle_tensor_info* info : {&q, &k, &v, &whole}) {
    if (info->dtype != q.dtype || info->stride[3] != 1) return {};
    for (int axis = 0; axis < 4; ++axis) key.push_back(info->shape[axis]);
    for (int axis = 0; axis < 4; ++axis) {
      // Of an axis of one element no step is taken; what stands there must only be possible.
      const std::int64_t step =
          info->shape[axis] == 1 ? device::element_count(*info) : info->stride[axis];
      if (axis < 3 && (step <= 0 || step % 8 != 0)) return {};
      key.push_back(step);
    }
  }
  return key;
}

struct CudnnAttention {
  static constexpr const char* op = HEDDLE_OP_ATTENTION;
  static constexpr const char* name = "cudnn";
  static void check(const heddle_op_call& call) { cpu::check_attention(call); }

  static const CudnnPlan* plan(Device& device, const heddle_op_call& call) {
    const Cudnn::Key key = device.cudnn() != nullptr ? key_of(device, call) : Cudnn::Key();
    return key.empty() ? nullptr : device.cudnn()->plan(key, describe);
  }
  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    return plan(device, call) != nullptr ? 20 : 0;
  }
  static std::size_t workspace(Device& device, const heddle_op_call& call) {
    const CudnnPlan* found = plan(device, call);
    return found != nullptr ? found->workspace_bytes() : 0;
  }
  static void run(Stream& stream, const heddle_op_call& call, void* workspace) {
    const CudnnPlan* found = plan(stream.device(), call);
    if (found == nullptr)
      device::fail(HEDDLE_UNSUPPORTED, "does not fit ", device::describe(in(call, 0).info));
    const auto scale = static_cast<float>(attrs<heddle_attention_attrs>(call).scale);
    const Cudnn::Binding bindings[] = {{kQ, in(call, 0).data},
                                       {kK, in(call, 1).data},
                                       {kV, in(call, 2).data},
                                       {kScale, &scale},
                                       {kOut, out(call).data}};
    for (const Cudnn::Binding& one : bindings)
      if (one.id != kScale && !lies_at_16(one.data)) return launch_other(kAttention, stream, call);
    stream.device().cudnn()->execute(stream.raw(), *found, bindings, workspace);
  }
};

}  // namespace

constexpr heddle_kernel kCudnnAttention = kernel_table<CudnnAttention>();

}  // namespace heddle::cuda
