#include "unet_heatmaps.h"

#include <heddle/batch_ops.hpp>
#include <heddle/checked.hpp>

#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kTaps = 4;
constexpr heddle_conv2d_attrs kHeatmapCell{{1, 1}, {0, 0, 0, 0}};

// The transposed convolution of 4x4 with strides of 2 and a padding of 1: each row of the result
// sees two of x, an even one row n - 1 by tap 3 and n by tap 1, an odd one n by tap 2 and n + 1 by
// tap 0; so do columns. One item. x (1, H, W, C), filter (4, 4, C, O) -> (1, 2 H, 2 W, O) f32.
Tensor enlarged(Context& ctx, const Tensor& x, const Tensor& filter) {
  const std::int64_t height = x.size(1), width = x.size(2), channels = x.size(3),
                     made = filter.size(3), cells = height * width;
  const Tensor around = ctx.make({1, height + 2, width + 2, channels});
  ops::fill(ctx, around, 0);
  ops::copy_into(ctx, x, around.slice(1, 1, height + 1).slice(2, 1, width + 1));
  const Tensor out = ctx.make({1, height, 2, width, 2, made}, HEDDLE_F32),
               rows = ctx.make({1, height, width, kTaps, channels}),
               matrix = ctx.make({1, kTaps, channels, made});
  for (std::int64_t below = 0; below < 2; ++below)
    for (std::int64_t right = 0; right < 2; ++right) {
      for (std::int64_t tap = 0; tap < kTaps; ++tap) {
        const std::int64_t y = below + tap / 2, x_at = right + tap % 2;  // of those with a border
        const auto number = [](std::int64_t side, std::int64_t which) {
          return side == 0 ? (which == 0 ? 3 : 1) : (which == 0 ? 2 : 0);
        };
        ops::copy_into(ctx,
                       around.slice(1, y, y + height)
                           .slice(2, x_at, x_at + width)
                           .reshape({1, height, width, 1, channels}),
                       rows.slice(3, tap, tap + 1));
        const std::int64_t down = number(below, tap / 2), across = number(right, tap % 2);
        ops::copy_into(ctx,
                       filter.slice(0, down, down + 1)
                           .slice(1, across, across + 1)
                           .reshape({1, 1, channels, made}),
                       matrix.slice(1, tap, tap + 1));
      }
      const Tensor part =
          ops::batched_product(ctx, rows.reshape({1, cells, kTaps * channels}),
                               matrix.reshape({1, kTaps * channels, made}), HEDDLE_F32);
      ops::copy_into(ctx, part.reshape({1, height, 1, width, 1, made}),
                     out.slice(2, below, below + 1).slice(4, right, right + 1));
    }
  return out.reshape({1, 2 * height, 2 * width, made});
}

// Each channel of each item by itself, then a SiLU, in the compute type.
Tensor normalised_each(Context& ctx, const Tensor& x) {
  constexpr double kEps = 1e-5;  // PyTorch's InstanceNorm2d
  const std::int64_t channels = x.size(3);
  const Tensor gain = ctx.make({channels}, HEDDLE_F32), shift = ctx.make({channels}, HEDDLE_F32);
  ops::fill(ctx, gain, 1);
  ops::fill(ctx, shift, 0);
  return ops::group_norm(ctx, x, gain, shift,
                         {kEps, checked_cast<std::int32_t>(channels, "channels"), HEDDLE_ACT_SILU});
}

}  // namespace

void UnetHeatmaps::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor taps = ops::cast(ctx, ctx[up].permute({2, 3, 0, 1}), ctx.compute());
  const std::int64_t items = x.size(0), keypoints = ctx[last].size(0);
  const Tensor made = ctx.make({items, 2 * x.size(1), 2 * x.size(2), keypoints}, HEDDLE_F32);
  for (std::int64_t item = 0; item < items; ++item) {
    const Tensor large = normalised_each(ctx, enlarged(ctx, x.slice(0, item, item + 1), taps));
    const Tensor mixed = normalised_each(
        ctx, blocks::wide_conv2d(ctx, large, ctx[conv], ctx[conv_bias], kHeatmapCell));
    ops::conv2d_into(ctx, mixed, ctx[last], ctx[last_bias], kHeatmapCell, {},
                     made.slice(0, item, item + 1));
  }
  ctx[out] = made;
}

UnetHeatmapHead::UnetHeatmapHead(const Checkpoint& file, const UnetNames& names)
    : file_(file), names_(names), at_(names.prefix() + "heatmap_head.") {}

std::optional<UnetHeatmapHead> UnetHeatmapHead::find(const Checkpoint& file,
                                                     const UnetNames& names) {
  const UnetHeatmapHead head(file, names);
  if (!file.has(head.at_ + "final_layer.weight")) return std::nullopt;
  return head;
}

std::size_t UnetHeatmapHead::stage() const {
  const std::int64_t wanted = file_.size(at_ + "deconv_layers.0.weight", 0);
  const std::vector<UnetStage>& stages = names_.outputs();
  for (std::size_t i = stages.size() - 1; i > 0; --i)
    for (const UnetPart& part : stages[i - 1])
      if (part.kind == UnetPart::Kind::resnet &&
          file_.size(names_.in_part(part, "in_layers.2", "weight"), 0) == wanted)
        return i;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              file_.path() + ": tensor '" + at_ + "deconv_layers.0.weight' reads " +
                  std::to_string(wanted) +
                  " channels, as none of the UNet's stages upwards does. The file is damaged.");
}

std::int64_t UnetHeatmapHead::keypoints() const {
  return file_.size(at_ + "final_layer.weight", 0);
}

void UnetHeatmapHead::tell(const Value& config, Blocks& graph) const {
  Record own = config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record();
  graph.setting("part_configs",
                Record().set("heatmaps", own.set("heatmaps", value_of(true)).value()).value());
  graph.setting("keypoints", keypoints());
}

Source UnetHeatmapHead::add(const Source& hidden, Blocks& graph) const {
  using B = UnetHeatmaps;
  Block block = graph.add<B>("heatmaps");
  block.link(B::hidden, hidden);
  blocks::Slots slots(file_, block, "heatmaps");
  const std::string up = at_ + "deconv_layers.0.weight", conv = at_ + "conv_layers.0.",
                    last = at_ + "final_layer.";
  const std::int64_t read = file_.size(up, 0), made = file_.size(up, 1),
                     mixed = file_.size(conv + "weight", 0);
  slots.fill(B::up, up, {read, made, kTaps, kTaps});
  slots.fill(B::conv, conv + "weight", {mixed, made, 1, 1});
  slots.fill(B::conv_bias, conv + "bias", {mixed});
  slots.fill(B::last, last + "weight", {keypoints(), mixed, 1, 1});
  slots.fill(B::last_bias, last + "bias", {keypoints()});
  return block[B::out];
}

}  // namespace heddle::denoisers
