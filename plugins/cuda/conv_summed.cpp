// conv3d/1 as a sum of conv2d/1: for each frame of the output one call for each frame of the
// filter, summed in f32. For what cuDNN has no plan of, and for filters of one pixel, which
// cuBLASLt multiplies. The filter's frames are copied apart first, since kernels of conv2d/1 read
// dense ones: some megabytes, which takes microseconds.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "call.h"
#include "frame_kernels.h"
#include "kernels.h"
#include "layouts.h"

namespace heddle::cuda {

bool sums_frames() {
  static const bool asked = [] {
    const char* text = std::getenv("HEDDLE_CUDA_FRAMES");
    return text != nullptr && std::strcmp(text, "sums") == 0;
  }();
  return asked;
}

namespace {

constexpr const heddle_kernel* kFlatKernels[] = {
#if defined(HEDDLE_WITH_CUDNN)
    &kCudnnConv2d,
#endif
    &kHopperConv2d, &kFewConv2d, &kPointConv2d, &kUnfoldedConv2d, &kConv2d};

constexpr const heddle_kernel* kBetterKernels[] = {
    &kFewConv3d,
    &kHopperConv3d,
#if defined(HEDDLE_WITH_CUDNN)
    &kCudnnConv3d,
#endif
};

std::size_t in_whole_lines(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// A view without one of its axes, of which it is at `index`.
heddle_view at(heddle_view view, std::uint32_t axis, std::int64_t index) {
  if (view.data != nullptr)
    view.data = static_cast<char*>(view.data) +
                index * view.info.stride[axis] *
                    static_cast<std::int64_t>(device::dtype_bytes(view.info.dtype));
  for (--view.info.rank; axis < view.info.rank; ++axis) {
    view.info.shape[axis] = view.info.shape[axis + 1];
    view.info.stride[axis] = view.info.stride[axis + 1];
  }
  return view;
}

// The calls of conv2d/1 for one frame of the output, and what they need. Borrows the call.
class FrameSum {
 public:
  FrameSum(const heddle_op_call& call, void* workspace)
      : call_(call),
        a_(attrs<heddle_conv3d_attrs>(call)),
        flat_{{a_.stride[1], a_.stride[2]},
              {a_.padding[1], a_.padding[2], a_.padding[4], a_.padding[5]}},
        filter_(at(in(call, 1), 2, 0)),
        workspace_(static_cast<char*>(workspace)) {
    const std::int64_t* made = out(call).info.shape;
    const std::int64_t shape[] = {1, made[2], made[3], made[4]};
    sum_ = {device::row_major(HEDDLE_F32, shape, 4), nullptr};
    filter_.info = device::row_major(filter_.info.dtype, filter_.info.shape, 4);
    filter_.info.layout = kChannelsLast;
    filter_bytes_ = static_cast<std::size_t>(
        device::bytes_of(filter_.info.dtype, device::element_count(filter_.info)));
    sum_bytes_ = in_whole_lines(
        static_cast<std::size_t>(device::bytes_of(HEDDLE_F32, device::element_count(sum_.info))));
  }
  FrameSum(const FrameSum&) = delete;

  std::int64_t taps() const { return in(call_, 1).info.shape[2]; }
  std::size_t filters_bytes() const {
    return in_whole_lines(filter_bytes_ * static_cast<std::size_t>(taps()));
  }
  // Filters, two sums that take turns, and what a call needs.
  std::size_t own_bytes() const { return filters_bytes() + 2 * sum_bytes_; }

  // The frame of x under a tap; none: below 0.
  std::int64_t seen(std::int64_t frame, std::int64_t tap) const {
    const std::int64_t t = frame * a_.stride[0] - a_.padding[0] + tap;
    return t < in(call_, 0).info.shape[1] ? t : -1;
  }
  std::int64_t first_tap(std::int64_t frame) const {
    std::int64_t tap = 0;
    while (tap < taps() && seen(frame, tap) < 0) ++tap;
    return tap;
  }
  bool sees_something() const {
    for (std::int64_t frame = 0; frame < out(call_).info.shape[1]; ++frame)
      if (first_tap(frame) == taps()) return false;
    return taps() > 0;
  }

  // Makes the call of one tap: sums `before` (nullptr: nothing was) and writes to `to`.
  const heddle_op_call& tap_call(std::int64_t item, std::int64_t t, std::int64_t tap,
                                 const heddle_view* before, const heddle_view* bias,
                                 const heddle_view& to) {
    heddle_view clip = in(call_, 0);
    if (clip.data != nullptr)
      clip.data = static_cast<char*>(clip.data) +
                  item * clip.info.stride[0] *
                      static_cast<std::int64_t>(device::dtype_bytes(clip.info.dtype));
    clip.info.shape[0] = 1;
    x_ = at(clip, 1, t);
    filter_.data = workspace_ != nullptr
                       ? workspace_ + static_cast<std::size_t>(tap) * filter_bytes_
                       : nullptr;
    to_ = to;
    in_[0] = &x_, in_[1] = &filter_, in_[2] = bias, in_[3] = before;
    made_ = call_;
    made_.op = HEDDLE_OP_CONV2D;
    made_.in = in_, made_.in_count = 4, made_.out = out_, made_.out_count = 1;
    made_.attrs = &flat_, made_.attrs_size = sizeof flat_;
    return made_;
  }
  heddle_view sum(int which) const {
    heddle_view made = sum_;
    made.data = workspace_ != nullptr
                    ? workspace_ + filters_bytes() + static_cast<std::size_t>(which) * sum_bytes_
                    : nullptr;
    return made;
  }

  // (O, F, R, S, C) to (F, O, R, S, C).
  void part_filters(Stream& stream) const {
    const auto rows = static_cast<std::size_t>(filter_.info.shape[0]);
    if (rows == 0 || filter_bytes_ == 0) return;
    const std::size_t width = filter_bytes_ / rows, step = width * static_cast<std::size_t>(taps());
    for (std::int64_t tap = 0; tap < taps(); ++tap)
      stream.device().check(
          cudaMemcpy2DAsync(
              workspace_ + static_cast<std::size_t>(tap) * filter_bytes_, width,
              static_cast<const char*>(in(call_, 1).data) + static_cast<std::size_t>(tap) * width,
              step, width, rows, cudaMemcpyDeviceToDevice, stream.raw()),
          "cudaMemcpy2DAsync");
  }

 private:
  const heddle_op_call& call_;
  const heddle_conv3d_attrs& a_;
  const heddle_conv2d_attrs flat_;
  heddle_view filter_, sum_{}, x_{}, to_{};
  char* workspace_;
  std::size_t filter_bytes_ = 0, sum_bytes_ = 0;
  const heddle_view* in_[4] = {};
  const heddle_view* out_[1] = {&to_};
  heddle_op_call made_{};
};

const heddle_kernel& best(Device& device, const heddle_op_call& call) {
  const heddle_kernel* found = &kConv2d;
  std::int32_t most = 0;
  for (const heddle_kernel* kernel : kFlatKernels)
    if (const std::int32_t fits = kernel->fits(handle(&device), &call); fits > most)
      most = fits, found = kernel;
  return *found;
}

struct SummedConv3d {
  static constexpr const char* op = HEDDLE_OP_CONV3D;
  static constexpr const char* name = "summed";
  static void check(const heddle_op_call& call) { cpu::check_conv3d(call); }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    constexpr std::int32_t kFits = 10;
    const heddle_tensor_info &x = in(call, 0).info, &weight = in(call, 1).info;
    if (device.settings().reference_only || weight.layout != kChannelsLast ||
        x.dtype != weight.dtype || device::element_count(out(call).info) == 0)
      return 0;
    // What is asked about here makes plans, which takes its time.
    for (const heddle_kernel* better : kBetterKernels)
      if (better->fits(handle(&device), &call) > kFits) return 0;
    FrameSum sum(call, nullptr);
    if (!sum.sees_something()) return 0;
    const heddle_view to = sum.sum(0);
    const heddle_op_call& first = sum.tap_call(0, 0, 0, nullptr, nullptr, to);
    return &best(device, first) != &kConv2d ? kFits : 0;
  }

  static std::size_t workspace(Device& device, const heddle_op_call& call) {
    FrameSum sum(call, nullptr);
    const heddle_view to = sum.sum(0), before = sum.sum(1);
    const heddle_view* bias = device::operand(call, 2);
    std::size_t most = 0;
    for (const heddle_view* added : {static_cast<const heddle_view*>(nullptr), &before})
      for (const heddle_view* biased : {static_cast<const heddle_view*>(nullptr), bias}) {
        const heddle_op_call& one = sum.tap_call(0, 0, 0, added, biased, to);
        most = std::max(most, best(device, one).workspace(handle(&device), &one));
      }
    return sum.own_bytes() + most;
  }

  static void run(Stream& stream, const heddle_op_call& call, void* workspace) {
    FrameSum sum(call, workspace);
    if (!sum.sees_something())
      device::fail(HEDDLE_UNSUPPORTED, "a frame of ", device::describe(out(call).info),
                   " lies in the padding alone");
    sum.part_filters(stream);
    char* const room = static_cast<char*>(workspace) + sum.own_bytes();
    const std::int64_t* made = out(call).info.shape;
    for (std::int64_t item = 0; item < made[0]; ++item)
      for (std::int64_t frame = 0; frame < made[1]; ++frame)
        add_frame(stream, call, sum, item, frame, room);
  }

 private:
  static void add_frame(Stream& stream, const heddle_op_call& call, FrameSum& sum,
                        std::int64_t item, std::int64_t frame, void* room) {
    const auto frame_of = [&](heddle_view whole) {
      whole.data = static_cast<char*>(whole.data) +
                   item * whole.info.stride[0] *
                       static_cast<std::int64_t>(device::dtype_bytes(whole.info.dtype));
      whole.info.shape[0] = 1;
      return at(whole, 1, frame);
    };
    heddle_view before{}, to = sum.sum(0);
    bool is_first = true;
    for (std::int64_t tap = sum.first_tap(frame); tap < sum.taps(); ++tap) {
      const std::int64_t t = sum.seen(frame, tap);
      if (t < 0) break;
      const heddle_view* bias = is_first ? device::operand(call, 2) : nullptr;
      const heddle_op_call& one =
          sum.tap_call(item, t, tap, is_first ? nullptr : &before, bias, to);
      launch_other(best(stream.device(), one), stream, one, room);
      before = to;
      to = sum.sum(before.data == sum.sum(0).data ? 1 : 0);
      is_first = false;
    }
    const heddle_view result = frame_of(out(call));
    const heddle_view* residual = device::operand(call, 3);
    const heddle_view added = residual != nullptr ? frame_of(*residual) : heddle_view{};
    const heddle_view *operands[] = {&before, &added}, *results[] = {&result};
    heddle_op_call last = call;
    last.op = residual != nullptr ? HEDDLE_OP_ADD : HEDDLE_OP_COPY;
    last.in = operands, last.in_count = residual != nullptr ? 2 : 1;
    last.out = results, last.out_count = 1;
    last.attrs = nullptr, last.attrs_size = 0;
    launch_other(residual != nullptr ? kAdd : kCopy, stream, last);
  }
};

}  // namespace

constexpr heddle_kernel kSummedConv3d = kernel_table<SummedConv3d>();

}  // namespace heddle::cuda
