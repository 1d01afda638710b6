#include "unet_control.h"

#include <heddle/ops.hpp>

#include "control.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"
#include "unet_union.h"

namespace heddle::denoisers {

void UnetControlled::execute(Context& ctx) {
  const auto has_size_of = [](const Tensor& one, const Tensor& other) {
    return one.size(1) == other.size(1) && one.size(2) == other.size(2);
  };
  const bool is_there =
      ctx.has(residual) && (!ctx[is_loose] || has_size_of(ctx[hidden], ctx[residual]));
  ctx[out] = is_there ? ops::add(ctx, ctx[hidden], ctx[residual]) : ctx[hidden];
}

void UnetHinted::execute(Context& ctx) { ctx[out] = ops::add(ctx, ctx[hidden], ctx[hint]); }

void UnetResidual::execute(Context& ctx) {
  constexpr heddle_conv2d_attrs kPixel{{1, 1}, {0, 0, 0, 0}};
  const Tensor x = ctx[hidden];
  if (!ctx[averages]) {
    ctx[out] = blocks::wide_conv2d(ctx, x, ctx[weight], ctx[bias], kPixel);
    return;
  }
  // The filter is linear, so that it may come behind the mean.
  const Tensor mean = mean_of_pixels(ctx, x).reshape({x.size(0), 1, 1, x.size(3)});
  const Tensor made = blocks::wide_conv2d(ctx, mean, ctx[weight], ctx[bias], kPixel);
  const Tensor all = ctx.make({x.size(0), x.size(1), x.size(2), made.size(3)}, HEDDLE_F32);
  ops::fill(ctx, all, 0);
  ops::add_into(ctx, all, made, all);
  ctx[out] = all;
}

// Attention that sees all pixels alike.
Tensor mean_of_pixels(Context& ctx, const Tensor& picture) {
  constexpr std::int64_t kHead = 64;
  const std::int64_t rows = picture.size(0), channels = picture.size(3),
                     heads = channels % kHead == 0 ? channels / kHead : 1;
  const Tensor pixels = ops::cast(ctx, picture, ctx.compute())
                            .reshape({rows, picture.size(1) * picture.size(2), channels});
  const Tensor split = blocks::split_heads(pixels, heads);
  const Tensor asked = ctx.make({rows, 1, heads, channels / heads});
  ops::fill(ctx, asked, 0);
  return blocks::join_heads(ops::attention(ctx, asked, split, split, {}, 1.0));
}

// Original files number the activations between the filters, too.
std::string UnetControlBuilder::filter(std::size_t index) const {
  constexpr std::size_t kLast = std::size(ControlHintFilters::weights) - 1;
  if (!is_diffusers_) return prefix_ + "input_hint_block." + std::to_string(2 * index);
  const std::string embedding = prefix_ + "controlnet_cond_embedding.";
  if (index == 0) return embedding + "conv_in";
  if (index == kLast) return embedding + "conv_out";
  return embedding + "blocks." + std::to_string(index - 1);
}

Source UnetControlBuilder::add_filters(std::int64_t channels_out) const {
  using B = ControlHintFilters;
  Block block = graph_.add<B>("embed.filters");
  block.link(B::hint, graph_.input("hint", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH))
      .set(B::pixels_first, true);
  blocks::Slots slots(file_, block, "embed.filters");
  std::int64_t channels = 3;
  for (std::size_t i = 0; i < std::size(B::weights); ++i) {
    const std::string module = filter(i);
    const bool is_last = i + 1 == std::size(B::weights);
    const std::int64_t made = is_last ? channels_out : file_.size(module + ".weight", 0);
    slots.fill(B::weights[i], module + ".weight", {made, channels, 3, 3});
    slots.fill(B::biases[i], module + ".bias", {made});
    channels = made;
  }
  return block[B::out];
}

Source UnetControlBuilder::add_hint(const Source& hidden, const UnetGrid& grid) const {
  Source hint = add_filters(grid.channels);
  if (const auto kinds = UnetUnion::find(file_, prefix_))
    hint = UnetUnion(file_, *kinds, prefix_, graph_).changed_hint(hint, grid.channels);
  Block sum = graph_.add<UnetHinted>("embed.hinted");
  sum.link(UnetHinted::hidden, hidden).link(UnetHinted::hint, hint);
  return sum[UnetHinted::out];
}

std::optional<Source> UnetControlBuilder::add_kinds(std::int64_t vector) const {
  const auto kinds = UnetUnion::find(file_, prefix_);
  if (!kinds) return std::nullopt;
  return UnetUnion(file_, *kinds, prefix_, graph_).embedded_kinds(vector);
}

void UnetControlBuilder::add_residual(int index, const Source& hidden, const UnetGrid& grid) {
  const std::string number = std::to_string(index);
  add_output("output." + number,
             is_diffusers_ ? "controlnet_down_blocks." + number : "zero_convs." + number + ".0",
             hidden, grid);
}

void UnetControlBuilder::add_middle(const Source& hidden, const UnetGrid& grid) {
  add_output("middle", is_diffusers_ ? "controlnet_mid_block" : "middle_block_out.0", hidden, grid);
}

void UnetControlBuilder::add_output(const std::string& name, const std::string& module,
                                    const Source& hidden, const UnetGrid& grid) {
  using B = UnetResidual;
  const std::string path = name + ".residual", output = "control." + name;
  Block block = graph_.add<B>(path);
  block.link(B::hidden, hidden).set(B::averages, averages_);
  blocks::Slots slots(file_, block, path);
  const std::string tensor = prefix_ + module;
  slots.fill(B::weight, tensor + ".weight", {grid.channels, grid.channels, 1, 1});
  slots.fill(B::bias, tensor + ".bias", {grid.channels});
  graph_.output(output.c_str(), block[B::out]);
  places_.add(output, grid);
}

void UnetControlBuilder::add_settings() const {
  graph_.setting("controls", std::string("unet"));
  graph_.setting("hint_pixels", true);
  if (const auto kinds = UnetUnion::find(file_, prefix_)) graph_.setting("control_modes", *kinds);
  places_.tell(graph_);
}

}  // namespace heddle::denoisers
