// conv2d/1 of small pictures with many channels: what each pixel sees is written down as a row, and
// cuBLASLt multiplies the rows by the filters and divides the sums among the card. cuDNN has a tile
// for so few pixels only where channels are few: 256 pixels of 1280 channels take 57 microseconds
// there, and of a filter's 29 MB of weights 6 are enough to read them.
#include "call.h"
#include "kernels.h"
#include "layouts.h"
#include "linear.cuh"
#include "view.cuh"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostPixels = 576;   // of an item's output
constexpr std::int64_t kLeastTerms = 1024;  // of a sum

struct Unfold {
  View x;     // of one item: (H, W, C)
  void* out;  // rows of taps x channels
  std::int32_t height, width, pieces, wide, taps_across, taps, top, left, step_down, step_across;
  std::int32_t count;  // pieces of eight in all
};

__global__ void __launch_bounds__(kThreads) unfold(const __grid_constant__ Unfold u) {
  const int at = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (at >= u.count) return;
  const int piece = at % u.pieces, rest = at / u.pieces, tap = rest % u.taps, pixel = rest / u.taps;
  const int y = pixel / u.wide * u.step_down - u.top + tap / u.taps_across,
            z = pixel % u.wide * u.step_across - u.left + tap % u.taps_across;
  uint4 raw = make_uint4(0, 0, 0, 0);
  if (y >= 0 && y < u.height && z >= 0 && z < u.width)
    raw = *reinterpret_cast<const uint4*>(
        static_cast<const char*>(u.x.data) +
        (y * u.x.stride[1] + z * u.x.stride[2] + piece * kVectorSize) * 2);
  static_cast<uint4*>(u.out)[at] = raw;
}

// The product for one item, as linear/1: borrows the call's operands.
class ItemProduct {
 public:
  ItemProduct(const heddle_op_call& call, std::int64_t item, void* rows)
      : matrix_(in(call, 1)), bias_(device::operand(call, 2)), call_(call) {
    const heddle_tensor_info& whole = heddle::cuda::out(call).info;
    const std::int64_t terms =
        matrix_.info.shape[1] * matrix_.info.shape[2] * matrix_.info.shape[3];
    const std::int64_t shape[] = {matrix_.info.shape[0], terms};
    matrix_.info = device::row_major(matrix_.info.dtype, shape, 2);
    const std::int64_t all[] = {1, whole.shape[1], whole.shape[2], terms};
    x_ = {device::row_major(in(call, 0).info.dtype, all, 4), rows};
    result_ = item_of(heddle::cuda::out(call), item);
    if (const heddle_view* residual = device::operand(call, 3))
      residual_ = item_of(*residual, item);
    in_[0] = &x_, in_[1] = &matrix_, in_[2] = bias_;
    in_[3] = device::operand(call, 3) != nullptr ? &residual_ : nullptr;
    call_.op = HEDDLE_OP_LINEAR;
    call_.in = in_, call_.in_count = 4, call_.out = out_;
    call_.attrs = &attrs_, call_.attrs_size = sizeof attrs_;
  }
  ItemProduct(const ItemProduct&) = delete;
  const heddle_op_call& call() const { return call_; }
  std::size_t row_bytes() const {
    return aligned(static_cast<std::size_t>(device::element_count(x_.info)) * 2);
  }

 private:
  static heddle_view item_of(heddle_view all, std::int64_t item) {
    if (all.data != nullptr)
      all.data = static_cast<char*>(all.data) +
                 item * all.info.stride[0] *
                     static_cast<std::int64_t>(device::dtype_bytes(heddle_dtype(all.info.dtype)));
    all.info.shape[0] = 1;
    return all;
  }
  heddle_view x_{}, matrix_, result_{}, residual_{};
  const heddle_view* bias_;
  const heddle_view* in_[4] = {};
  const heddle_view* out_[1] = {&result_};
  heddle_activation_attrs attrs_{HEDDLE_ACT_NONE};
  heddle_op_call call_;
};

// Whatever the number of items: one is done like the other.
bool is_small_and_deep(const heddle_op_call& call) {
  const heddle_tensor_info &x = in(call, 0).info, &weight = in(call, 1).info,
                           &whole = out(call).info;
  const std::int64_t taps = weight.shape[2] * weight.shape[3];
  return weight.layout == kChannelsLast && x.dtype == weight.dtype &&
         (x.dtype == HEDDLE_BF16 || x.dtype == HEDDLE_F16) && weight.shape[1] % kVectorSize == 0 &&
         taps > 1 && taps * weight.shape[1] >= kLeastTerms && weight.shape[0] > kVectorSize &&
         whole.shape[1] * whole.shape[2] <= kMostPixels && x.shape[0] > 0 && x.stride[3] == 1 &&
         x.stride[0] % kVectorSize == 0 && x.stride[1] % kVectorSize == 0 &&
         x.stride[2] % kVectorSize == 0;
}

struct UnfoldedConv {
  static constexpr const char* op = HEDDLE_OP_CONV2D;
  static constexpr const char* name = "cublaslt unfolded";
  static void check(const heddle_op_call& call) { cpu::check_conv2d(call); }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    constexpr std::int32_t kFits = 25;
    if (device.settings().reference_only || !is_small_and_deep(call)) return 0;
    const ItemProduct product(call, 0, nullptr);
    return kMatmulLinear.fits(handle(&device), &product.call()) > 0 ? kFits : 0;
  }
  static std::size_t workspace(Device& device, const heddle_op_call& call) {
    if (!is_small_and_deep(call)) return 0;
    const ItemProduct product(call, 0, nullptr);
    return product.row_bytes() + kMatmulLinear.workspace(handle(&device), &product.call());
  }
  static void run(Stream& stream, const heddle_op_call& call, void* workspace) {
    if (!is_small_and_deep(call))
      device::fail(HEDDLE_UNSUPPORTED, "does not fit ", device::describe(in(call, 1).info));
    const heddle_view& x = in(call, 0);
    if (!lies_at_16(x.data) || !lies_at_16(in(call, 1).data))
      return launch_other(kConv2d, stream, call);
    const auto& a = attrs<heddle_conv2d_attrs>(call);
    const heddle_tensor_info &weight = in(call, 1).info, &whole = out(call).info;
    if (device::element_count(whole) == 0) return;
    const auto number = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
    const std::int64_t pieces = weight.shape[1] / kVectorSize,
                       taps = weight.shape[2] * weight.shape[3];
    for (std::int64_t item = 0; item < x.info.shape[0]; ++item) {
      Unfold u{view_of(&x, x.info),
               workspace,
               number(x.info.shape[1]),
               number(x.info.shape[2]),
               number(pieces),
               number(whole.shape[2]),
               number(weight.shape[3]),
               number(taps),
               a.padding[0],
               a.padding[1],
               a.stride[0],
               a.stride[1],
               number(whole.shape[1] * whole.shape[2] * taps * pieces)};
      u.x.data = static_cast<char*>(x.data) + item * x.info.stride[0] * 2;
      unfold<<<blocks_for(u.count, kThreads), kThreads, 0, stream.raw()>>>(u);
      const ItemProduct product(call, item, workspace);
      launch_other(kMatmulLinear, stream, product.call(),
                   static_cast<char*>(workspace) + product.row_bytes());
    }
  }
};

}  // namespace

constexpr heddle_kernel kUnfoldedConv2d = kernel_table<UnfoldedConv>();

}  // namespace heddle::cuda
