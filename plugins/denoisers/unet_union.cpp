#include "unet_union.h"

#include <heddle/ops.hpp>

#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"
#include "unet_control.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kKindWaves = 256;
constexpr const char* kTable = "task_embedding";
constexpr const char* kKindsIn = "control_add_embedding.linear_1";

void fill_both(blocks::Slots& slots, const Weight& weight, const Weight& bias,
               const std::string& module, const Shape& shape) {
  slots.fill(weight, module + ".weight", shape);
  slots.fill(bias, module + ".bias", {shape.front()});
}

}  // namespace

void UnetUnionKinds::execute(Context& ctx) {
  const heddle_timestep_embedding_attrs waves{1, 10000, 0, 1, 0};
  const std::int64_t count = ctx[kinds].size(0);
  const Tensor embedded = ctx.make({count, kKindWaves}, HEDDLE_F32);
  ops::timestep_embedding_into(ctx, ctx[kinds], waves, embedded);
  const Tensor inner = blocks::wide_linear(ctx, embedded.reshape({1, count * kKindWaves}), ctx[in],
                                           ctx[in_bias], HEDDLE_ACT_SILU);
  ctx[out] = blocks::wide_linear(ctx, inner, ctx[out_weight], ctx[out_bias]);
}

void UnetUnionFeature::execute(Context& ctx) {
  const Tensor mean = mean_of_pixels(ctx, ctx[hint]);
  if (!ctx.has(mode)) {
    ctx[out] = mean;
    return;
  }
  const Tensor row = blocks::wide_embedding(ctx, ctx[table], ctx[mode]);
  ctx[out] = ops::add(ctx, mean, row.reshape({1, 1, mean.size(2)}));
}

void UnetUnionLayer::execute(Context& ctx) {
  Tensor x = ctx[feature];
  const Tensor seen =
      ops::linear(ctx, ops::layer_norm(ctx, x, ctx[norm1], ctx[norm1_bias], ctx[eps]), ctx[value],
                  ctx[value_bias]);
  x = ops::linear(ctx, seen, ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE, x);
  const Tensor raised =
      ops::linear(ctx, ops::layer_norm(ctx, x, ctx[norm2], ctx[norm2_bias], ctx[eps]), ctx[up],
                  ctx[up_bias], HEDDLE_ACT_QUICK_GELU);
  ctx[out] = ops::linear(ctx, raised, ctx[down], ctx[down_bias], HEDDLE_ACT_NONE, x);
}

void UnetUnionHint::execute(Context& ctx) {
  const Tensor plain = ctx[hint];
  if (!ctx.has(mode)) {
    ctx[out] = plain;
    return;
  }
  const Tensor moved = blocks::wide_linear(ctx, ctx[feature], ctx[proj], ctx[proj_bias]);
  ctx[out] = ops::add(ctx, plain, moved.reshape({moved.size(0), 1, 1, moved.size(2)}));
}

std::optional<std::int64_t> UnetUnion::find(const Checkpoint& file, const std::string& prefix) {
  if (!file.has(prefix + kTable) || !file.has(prefix + kKindsIn + ".weight")) return std::nullopt;
  return file.size(prefix + kTable, 0);
}

Source UnetUnion::embedded_kinds(std::int64_t vector) const {
  using B = UnetUnionKinds;
  Block block = graph_.add<B>("embed.kinds");
  block.link(B::kinds, graph_.input("kinds", HEDDLE_INPUT_LOOP_INVARIANT));
  blocks::Slots slots(file_, block, "embed.kinds");
  fill_both(slots, B::in, B::in_bias, prefix_ + kKindsIn, {vector, kinds_ * kKindWaves});
  fill_both(slots, B::out_weight, B::out_bias, prefix_ + "control_add_embedding.linear_2",
            {vector, vector});
  return block[B::out];
}

Source UnetUnion::changed_hint(const Source& hint, std::int64_t channels) const {
  using F = UnetUnionFeature;
  using H = UnetUnionHint;
  const Source mode = graph_.input("mode", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL);
  Block begin = graph_.add<F>("embed.feature");
  begin.link(F::hint, hint).link(F::mode, mode);
  blocks::Slots(file_, begin, "embed.feature").fill(F::table, prefix_ + kTable, {kinds_, channels});
  Source feature = begin[F::out];
  const int layers = blocks::layer_count(file_, prefix_ + "transformer_layes.");
  for (int i = 0; i < layers; ++i) feature = add_layer(i, feature, channels);
  Block end = graph_.add<H>("embed.kind");
  end.link(H::hint, hint).link(H::feature, feature).link(H::mode, mode);
  blocks::Slots slots(file_, end, "embed.kind");
  fill_both(slots, H::proj, H::proj_bias, prefix_ + "spatial_ch_projs", {channels, channels});
  return end[H::out];
}

Source UnetUnion::add_layer(int index, const Source& feature, std::int64_t channels) const {
  using B = UnetUnionLayer;
  const std::string path = "embed.layer." + std::to_string(index),
                    module = prefix_ + "transformer_layes." + std::to_string(index) + ".";
  Block block = graph_.add<B>(path);
  block.link(B::feature, feature);
  blocks::Slots slots(file_, block, path);
  fill_both(slots, B::norm1, B::norm1_bias, module + "ln_1", {channels});
  // Queries and keys come before.
  const std::int64_t begin = 2 * channels, end = 3 * channels;
  slots.fill(B::value, {{module + "attn.in_proj_weight", begin, end}}, {channels, channels});
  slots.fill(B::value_bias, {{module + "attn.in_proj_bias", begin, end}}, {channels});
  fill_both(slots, B::proj, B::proj_bias, module + "attn.out_proj", {channels, channels});
  fill_both(slots, B::norm2, B::norm2_bias, module + "ln_2", {channels});
  fill_both(slots, B::up, B::up_bias, module + "mlp.c_fc", {4 * channels, channels});
  fill_both(slots, B::down, B::down_bias, module + "mlp.c_proj", {channels, 4 * channels});
  return block[B::out];
}

}  // namespace heddle::denoisers
