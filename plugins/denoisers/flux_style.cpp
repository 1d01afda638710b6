#include "flux_style.h"

#include <heddle/ops.hpp>

#include "joint_attention.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

using Style = FluxStyleTokens;

constexpr std::int64_t kSeenLayers = 3;
const std::string kStyleEmbedder = "feature_embedder.";

// What makes tokens of the states behind one layer of the tower: its name in the file, and slots.
struct StyleLayer {
  const char* name;
  const Weight &mix, &mix_bias, &norm, &norm_bias, &out, &out_bias;
};
// In the order of the hint.
constexpr StyleLayer kStyleLayers[kSeenLayers] = {
    {"low", Style::early_mix, Style::early_mix_bias, Style::early_norm, Style::early_norm_bias,
     Style::early_out, Style::early_out_bias},
    {"mid", Style::middle_mix, Style::middle_mix_bias, Style::middle_norm, Style::middle_norm_bias,
     Style::middle_out, Style::middle_out_bias},
    {"high", Style::late_mix, Style::late_mix_bias, Style::late_norm, Style::late_norm_bias,
     Style::late_out, Style::late_out_bias}};

// Of the file's tensors.
struct StyleSizes {
  std::int64_t seen, tokens, width, hidden;
};
StyleSizes read_style_sizes(const Checkpoint& file, const std::string& prefix) {
  const std::string at = prefix + kStyleEmbedder, mix = at + "high_embedding_linear.0.weight",
                    out = at + "high_projection.weight";
  return {file.size(mix, 1), file.size(mix, 0), file.size(out, 1), file.size(out, 0)};
}

Source add_style_tokens(const Checkpoint& file, const std::string& prefix, const std::string& path,
                        const Source& hint, const StyleSizes& s, Blocks& graph) {
  Block block = graph.add<Style>(path);
  block.link(Style::hint, hint);
  blocks::Slots slots(file, block, path);
  for (const StyleLayer& layer : kStyleLayers) {
    const std::string at = prefix + kStyleEmbedder + layer.name;
    slots.fill(layer.mix, at + "_embedding_linear.0.weight", {s.tokens, s.seen});
    slots.fill(layer.mix_bias, at + "_embedding_linear.0.bias", {s.tokens});
    slots.fill(layer.norm, at + "_layer_norm.weight", {s.width});
    slots.fill(layer.norm_bias, at + "_layer_norm.bias", {s.width});
    slots.fill(layer.out, at + "_projection.weight", {s.hidden, s.width});
    slots.fill(layer.out_bias, at + "_projection.bias", {s.hidden});
  }
  return block[Style::out];
}

}  // namespace

void FluxStyleTokens::execute(Context& ctx) {
  const Tensor seen = ctx[hint];
  if (seen.rank() != 3 || seen.size(0) != kSeenLayers)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a style is read off the states of three layers (3, tokens, width). Link "
                "USOStyleReference.");
  const std::int64_t each = ctx[late_mix].size(0), hidden = ctx[late_out].size(0);
  const Tensor all = ctx.make({1, kSeenLayers * each, hidden}, HEDDLE_F32);
  for (std::int64_t i = 0; i < kSeenLayers; ++i) {
    const StyleLayer& layer = kStyleLayers[i];
    const Tensor columns =
        ops::cast(ctx, seen.slice(0, i, i + 1).permute({0, 2, 1}), ctx.compute());
    const Tensor mixed =
        blocks::wide_linear(ctx, columns, ctx[layer.mix], ctx[layer.mix_bias], HEDDLE_ACT_SILU);
    const Tensor rows = ops::contiguous(ctx, mixed.permute({0, 2, 1}));
    const Tensor normed = ctx.make(rows.shape());
    ops::layer_norm_into(ctx, rows, ctx[layer.norm], ctx[layer.norm_bias], ctx[eps], normed);
    const std::int64_t begin = (kSeenLayers - 1 - i) * each;
    ops::linear_into(ctx, normed, ctx[layer.out], ctx[layer.out_bias], HEDDLE_ACT_NONE, {},
                     tokens(all, {begin, begin + each}));
  }
  ctx[out] = all;
}

void FluxStyleJoin::execute(Context& ctx) {
  const Tensor before = ctx[style], text = ctx[txt];
  const std::int64_t length = before.size(1), all = length + text.size(1);
  const Tensor joined = ctx.make({text.size(0), all, text.size(2)}, text.dtype());
  for (std::int64_t item = 0; item < text.size(0); ++item)
    ops::copy_into(ctx, before, tokens(joined.slice(0, item, item + 1), {0, length}));
  if (text.size(1) > 0) ops::copy_into(ctx, text, tokens(joined, {length, all}));
  ctx[out] = joined;
}

Source add_style(const Checkpoint& file, const ModelPatch& patch, std::int64_t hidden,
                 const Source& txt, Blocks& graph) {
  using B = FluxStyleJoin;
  StyleSizes sizes = read_style_sizes(file, patch.prefix);
  sizes.hidden = hidden;
  const Source made = add_style_tokens(file, patch.prefix, patch.path + ".hint",
                                       add_hint_input(patch, graph), sizes, graph);
  Block block = graph.add<B>(patch.path + ".join");
  block.link(B::style, made).link(B::txt, txt);
  return block[B::out];
}

int UsoProjector::match(const Checkpoint& file, const Value&) {
  return file.has(kStyleEmbedder + "mid_layer_norm.bias") ? 100 : 0;
}

void UsoProjector::build(const Checkpoint& file, const Value&, Blocks& graph) {
  const StyleSizes sizes = read_style_sizes(file, "");
  const Source hint = graph.input("hint", HEDDLE_INPUT_LOOP_INVARIANT);
  graph.output("tokens", add_style_tokens(file, "", "hint", hint, sizes, graph));
  graph.setting("patches", "flux");
  graph.setting("patch_width", sizes.hidden);
  graph.setting("seen_tokens", sizes.seen);
  graph.setting("seen_width", sizes.width);
}

}  // namespace heddle::denoisers
