// conv2d/1 with filters of one pixel: the product of all pixels and a matrix, by cuBLASLt. Below
// cuDNN, which adds bias and residual to large ones in one pass; above our own kernel, which takes
// a hundred times as long where channels are many and pixels few.
#include <algorithm>

#include "call.h"
#include "kernels.h"
#include "layouts.h"

namespace heddle::cuda {

namespace {

bool is_point(const heddle_op_call& call) {
  const auto& a = attrs<heddle_conv2d_attrs>(call);
  const heddle_tensor_info& weight = in(call, 1).info;
  const bool ones =
      weight.shape[2] == 1 && weight.shape[3] == 1 && a.stride[0] == 1 && a.stride[1] == 1;
  const bool unpadded =
      a.padding[0] == 0 && a.padding[1] == 0 && a.padding[2] == 0 && a.padding[3] == 0;
  return ones && unpadded && weight.layout == kChannelsLast;
}

// The same call as linear/1; borrows its operands. REQUIRES: is_point().
class AsLinear {
 public:
  explicit AsLinear(const heddle_op_call& call) : matrix_(in(call, 1)), call_(call) {
    const std::int64_t shape[] = {matrix_.info.shape[0], matrix_.info.shape[1]};
    matrix_.info = device::row_major(matrix_.info.dtype, shape, 2);
    for (std::uint32_t i = 0; i < std::min(call.in_count, kMost); ++i) in_[i] = call.in[i];
    in_[1] = &matrix_;
    call_.op = HEDDLE_OP_LINEAR;
    call_.in = in_;
    call_.attrs = &attrs_;
    call_.attrs_size = sizeof attrs_;
  }
  AsLinear(const AsLinear&) = delete;
  const heddle_op_call& call() const { return call_; }

 private:
  static constexpr std::uint32_t kMost = 4;  // x, matrix, bias, residual
  heddle_view matrix_;
  const heddle_view* in_[kMost] = {};
  heddle_activation_attrs attrs_{HEDDLE_ACT_NONE};
  heddle_op_call call_;
};

struct PointConv {
  static constexpr const char* op = HEDDLE_OP_CONV2D;
  static constexpr const char* name = "cublaslt";
  static void check(const heddle_op_call& call) { cpu::check_conv2d(call); }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    constexpr std::int32_t kFits = 10;
    if (device.settings().reference_only || !is_point(call)) return 0;
    const AsLinear linear(call);
    return kMatmulLinear.fits(handle(&device), &linear.call()) > 0 ? kFits : 0;
  }
  static std::size_t workspace(Device& device, const heddle_op_call& call) {
    if (!is_point(call)) return 0;
    const AsLinear linear(call);
    return kMatmulLinear.workspace(handle(&device), &linear.call());
  }
  static void run(Stream& stream, const heddle_op_call& call, void* workspace) {
    if (!is_point(call))
      device::fail(HEDDLE_UNSUPPORTED, "does not fit ", device::describe(in(call, 1).info));
    const AsLinear linear(call);
    launch_other(kMatmulLinear, stream, linear.call(), workspace);
  }
};

}  // namespace

constexpr heddle_kernel kPointConv2d = kernel_table<PointConv>();

}  // namespace heddle::cuda
