// conv2d/1 by oneDNN: each tile, some lines of one picture times one panel of the filter, is one
// call. A picture is cut by its own shape, so that its bytes do not depend on its neighbours.
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

}  // namespace

constexpr heddle_kernel kOnednnConv2d = kernel_table<OnednnConv2d>();

}  // namespace heddle::cpu
