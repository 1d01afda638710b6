// conv2d/1 and conv3d/1 by oneDNN: each tile, some lines of one picture times one panel of the
// filter, is one call. A picture is cut by its own shape, so that its bytes do not depend on its
// neighbours.
#include <algorithm>

#include "device.h"
#include "gemm.h"
#include "kernels.h"
#include "onednn_primitives.h"
#include "op_check.h"

namespace heddle::cpu {

namespace {

struct Lines {
  std::int64_t first, count;  // of the output
  std::int64_t top;           // the first line of the picture under the filter
  const Primitive* primitive;
};

class Cutting {
 public:
  Cutting(const heddle_view& x, const heddle_view& weight, const heddle_view& out,
          const heddle_conv2d_attrs& attrs)
      : x_(x.info), weight_(weight.info), out_(out.info), attrs_(attrs) {
    // A tile's pixels and its sums stay in a core's second cache, and a picture gives enough tiles
    // for some threads.
    constexpr std::int64_t kPixels = 512;
    const std::int64_t height = std::max<std::int64_t>(1, out_.shape[1]),
                       width = std::max<std::int64_t>(1, out_.shape[2]);
    const std::int64_t most = std::clamp<std::int64_t>(kPixels / width, 1, height);
    count_ = (height + most - 1) / most;
    lines_ = (height + count_ - 1) / count_;
    count_ = (height + lines_ - 1) / lines_;
  }

  // Whether operands are such as oneDNN reads. REQUIRES: check_conv2d has passed.
  bool is_known() const {
    return weight_.layout == kFilterPairs && x_.dtype == HEDDLE_BF16 && x_.shape[3] > 0 &&
           out_.shape[1] > 0 && out_.shape[2] > 0 && x_.stride[2] == x_.shape[3] &&
           x_.stride[1] == x_.shape[2] * x_.shape[3];
  }

  std::int64_t count() const { return count_; }
  std::int64_t most_lines() const { return lines_; }

  Lines at(Device& device, std::int64_t index) const {
    const std::int64_t first = index * lines_, count = std::min(lines_, out_.shape[1] - first);
    const std::int64_t top = first * attrs_.stride[0] - attrs_.padding[0];
    const std::int64_t bottom = top + (count - 1) * attrs_.stride[0] + weight_.shape[2];  // past it
    const std::int64_t inside = std::clamp<std::int64_t>(top, 0, x_.shape[1]),
                       end = std::clamp<std::int64_t>(bottom, inside, x_.shape[1]);
    // What lies outside altogether is nothing that oneDNN can be asked for.
    if (inside == end) return {first, count, inside, nullptr};
    return {first, count, inside,
            device.primitives().convolution(
                {end - inside,
                 x_.shape[2],
                 x_.shape[3],
                 count,
                 out_.shape[2],
                 {weight_.shape[2], weight_.shape[3]},
                 {attrs_.stride[0], attrs_.stride[1]},
                 {inside - top, attrs_.padding[1], bottom - end, attrs_.padding[3]}})};
  }

 private:
  const heddle_tensor_info &x_, &weight_, &out_;
  const heddle_conv2d_attrs& attrs_;
  std::int64_t lines_, count_;
};

struct OnednnConv2d {
  static constexpr const char* op = HEDDLE_OP_CONV2D;
  static constexpr const char* name = "onednn";
  static void check(const heddle_op_call& call) { check_conv2d(call); }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    const heddle_view *x = device::operand(call, 0), *weight = device::operand(call, 1);
    if (device.settings().reference_only || x == nullptr || weight == nullptr ||
        call.out_count != 1 || call.out[0] == nullptr || x->info.rank != 4 ||
        weight->info.rank != 4 || call.out[0]->info.rank != 4 ||
        call.attrs_size != sizeof(heddle_conv2d_attrs))
      return 0;
    const Cutting cutting(*x, *weight, *call.out[0],
                          *static_cast<const heddle_conv2d_attrs*>(call.attrs));
    if (!cutting.is_known()) return 0;
    for (std::int64_t i = 0; i < cutting.count(); ++i)
      if (cutting.at(device, i).primitive == nullptr) return 0;
    return 3;
  }

  static void run(const Call& call) {
    const heddle_view &x = call.in(0), &weight = call.in(1), &out = call.out();
    const Cutting cutting(x, weight, out, call.attrs<heddle_conv2d_attrs>());
    auto* lines =
        call.stream().call_scratch().take<Lines>(static_cast<std::size_t>(cutting.count()));
    for (std::int64_t i = 0; i < cutting.count(); ++i) {
      lines[i] = cutting.at(call.device(), i);
      if (lines[i].primitive == nullptr)
        device::fail(HEDDLE_UNSUPPORTED, "oneDNN has no kernel for this convolution");
    }
    const std::int64_t outputs = weight.info.shape[0], panels = panel_count(outputs);
    const std::int64_t height = out.info.shape[1], width = out.info.shape[2];
    const Right right{&weight, &call.device().vector()};
    const Finish finish(call, load_bias(call, call.maybe(2), outputs), HEDDLE_ACT_NONE,
                        call.maybe(3));
    // Panel after panel on the same lines, which are then in cache.
    const std::int64_t tiles = out.info.shape[0] * cutting.count() * panels;
    call.parallel_for(tiles, [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t panel = tile % panels, item = tile / panels / cutting.count();
      const Lines& part = lines[tile / panels % cutting.count()];
      auto* sums = scratch.take<float>(
          static_cast<std::size_t>(cutting.most_lines() * width * kPanelColumns));
      part.primitive->run(element(x, item * x.info.stride[0] + part.top * x.info.stride[1]),
                          right.stored(panel, 0), sums, scratch);
      const std::int64_t column = panel * kPanelColumns;
      finish.write(sums, kPanelColumns, (item * height + part.first) * width, part.count * width,
                   column, std::min(kPanelColumns, outputs - column), scratch);
    });
  }
};

// A call of conv3d/1 as its frames' convolutions: a tile is the sum of one of conv2d/1 for each
// frame of the filter, in f32.
class FrameCall {
 public:
  FrameCall(const heddle_view& x, const heddle_view& weight, const heddle_view& out,
            const heddle_conv3d_attrs& attrs)
      : x_(x),
        attrs_(attrs),
        frames_(x.info.shape[1]),
        made_(out.info.shape[1]),
        taps_(weight.info.shape[2]),
        tap_length_(sum_length(weight.info) / std::max<std::int64_t>(1, taps_)),
        frame_(without(x, 1)),
        filter_(without(weight, 2)),
        result_(without(out, 1)),
        flat_{{attrs.stride[1], attrs.stride[2]},
              {attrs.padding[1], attrs.padding[2], attrs.padding[4], attrs.padding[5]}},
        cutting_(frame_, filter_, result_, flat_) {}
  FrameCall(const FrameCall&) = delete;
  FrameCall& operator=(const FrameCall&) = delete;

  const Cutting& cutting() const { return cutting_; }

  // Of the nth frame of all outputs: some lines of it times a panel.
  void sum(std::int64_t number, const Lines& part, const Right& right, std::int64_t panel,
           float* sums, Scratch& scratch) const {
    const std::int64_t item = number / made_,
                       first = number % made_ * attrs_.stride[0] - attrs_.padding[0];
    const std::int64_t count = part.count * result_.info.shape[2] * kPanelColumns;
    std::fill(sums, sums + count, 0.0f);
    auto* more = scratch.take<float>(static_cast<std::size_t>(count));
    for (std::int64_t tap = 0; tap < taps_; ++tap) {
      const std::int64_t frame = first + tap;
      if (frame < 0 || frame >= frames_) continue;
      const std::int64_t at =
          item * x_.info.stride[0] + frame * x_.info.stride[1] + part.top * x_.info.stride[2];
      part.primitive->run(element(x_, at), right.stored(panel, tap * tap_length_), more, scratch);
      for (std::int64_t i = 0; i < count; ++i) sums[i] += more[i];
    }
  }

 private:
  static heddle_view without(heddle_view view, std::uint32_t axis) {
    for (--view.info.rank; axis < view.info.rank; ++axis) {
      view.info.shape[axis] = view.info.shape[axis + 1];
      view.info.stride[axis] = view.info.stride[axis + 1];
    }
    return view;
  }
  const heddle_view& x_;
  const heddle_conv3d_attrs& attrs_;
  const std::int64_t frames_, made_, taps_, tap_length_;
  const heddle_view frame_, filter_, result_;
  const heddle_conv2d_attrs flat_;
  const Cutting cutting_;
};

struct OnednnConv3d {
  static constexpr const char* op = HEDDLE_OP_CONV3D;
  static constexpr const char* name = "onednn";
  static void check(const heddle_op_call& call) { check_conv3d(call); }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    const heddle_view *x = device::operand(call, 0), *weight = device::operand(call, 1);
    if (device.settings().reference_only || x == nullptr || weight == nullptr ||
        call.out_count != 1 || call.out[0] == nullptr || x->info.rank != 5 ||
        weight->info.rank != 5 || call.out[0]->info.rank != 5 ||
        call.attrs_size != sizeof(heddle_conv3d_attrs))
      return 0;
    const FrameCall frames(*x, *weight, *call.out[0],
                           *static_cast<const heddle_conv3d_attrs*>(call.attrs));
    if (!frames.cutting().is_known()) return 0;
    for (std::int64_t i = 0; i < frames.cutting().count(); ++i)
      if (frames.cutting().at(device, i).primitive == nullptr) return 0;
    return 3;
  }

  static void run(const Call& call) {
    const heddle_view &x = call.in(0), &weight = call.in(1), &out = call.out();
    const FrameCall frames(x, weight, out, call.attrs<heddle_conv3d_attrs>());
    const Cutting& cutting = frames.cutting();
    auto* lines =
        call.stream().call_scratch().take<Lines>(static_cast<std::size_t>(cutting.count()));
    for (std::int64_t i = 0; i < cutting.count(); ++i) {
      lines[i] = cutting.at(call.device(), i);
      if (lines[i].primitive == nullptr)
        device::fail(HEDDLE_UNSUPPORTED, "oneDNN has no kernel for this convolution");
    }
    const std::int64_t outputs = weight.info.shape[0], panels = panel_count(outputs);
    const std::int64_t height = out.info.shape[2], width = out.info.shape[3];
    const Right right{&weight, &call.device().vector()};
    const Finish finish(call, load_bias(call, call.maybe(2), outputs), HEDDLE_ACT_NONE,
                        call.maybe(3));
    const std::int64_t tiles = out.info.shape[0] * out.info.shape[1] * cutting.count() * panels;
    call.parallel_for(tiles, [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t panel = tile % panels, number = tile / panels / cutting.count();
      const Lines& part = lines[tile / panels % cutting.count()];
      auto* sums = scratch.take<float>(
          static_cast<std::size_t>(cutting.most_lines() * width * kPanelColumns));
      frames.sum(number, part, right, panel, sums, scratch);
      const std::int64_t column = panel * kPanelColumns;
      finish.write(sums, kPanelColumns, (number * height + part.first) * width, part.count * width,
                   column, std::min(kPanelColumns, outputs - column), scratch);
    });
  }
};

}  // namespace

constexpr heddle_kernel kOnednnConv2d = kernel_table<OnednnConv2d>();
constexpr heddle_kernel kOnednnConv3d = kernel_table<OnednnConv3d>();

}  // namespace heddle::cpu
