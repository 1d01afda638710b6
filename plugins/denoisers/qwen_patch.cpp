#include "qwen_patch.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "flux_blocks.h"
#include "joint_attention.h"
#include "patches.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

// As in the released code.
constexpr std::int64_t kLatentChannels = 16;

Source add_hint_tokens(const Checkpoint& file, const std::string& prefix, const std::string& path,
                       const Source& hint, std::int64_t hidden, Blocks& graph) {
  using B = FluxImageIn;
  Block block = graph.add<B>(path);
  block.link(B::x, hint).set(B::patch, kPatch);
  blocks::Slots slots(file, block, path);
  const std::string weight = prefix + "img_in.weight";
  slots.fill(B::weight, weight, {hidden, file.size(weight, 1)});
  slots.fill(B::bias, prefix + "img_in.bias", {hidden});
  return block[B::out];
}

Tensor wide_norm(Context& ctx, const Tensor& x, const Tensor& weight, double eps) {
  const Tensor normed = ctx.make(x.shape(), HEDDLE_F32);
  ops::rms_norm_into(ctx, x, weight, eps, normed);
  return normed;
}

}  // namespace

void QwenPatchAdd::execute(Context& ctx) {
  const Tensor all = ctx[img], hints = ctx[hint];
  const std::int64_t begin = ctx.shard(img).begin, length = all.size(1),
                     count = std::clamp<std::int64_t>(hints.size(1) - begin, 0, length);
  if (count == 0) {
    ctx[out] = all;
    return;
  }
  const Tensor x = tokens(all, {0, count});
  const Tensor sum = ctx.make(x.shape());
  ops::add_into(ctx, wide_norm(ctx, x, ctx[img_norm], ctx[eps]),
                wide_norm(ctx, tokens(hints, {begin, begin + count}), ctx[hint_norm], ctx[eps]),
                sum);
  const Tensor middle = ctx.make(x.shape());
  ops::linear_into(ctx, sum, ctx[in], ctx[in_bias], HEDDLE_ACT_GELU, {}, middle);
  const Tensor added = blocks::wide_linear(ctx, middle, ctx[made], ctx[made_bias]);
  const Tensor changed = ctx.make_like(all);
  ops::combine_into(ctx, {{1.0, x}, {ctx[strength], added}}, tokens(changed, {0, count}));
  if (count < length)
    ops::copy_into(ctx, tokens(all, {count, length}), tokens(changed, {count, length}));
  ctx[out] = changed;
}

QwenPatch::QwenPatch(const Checkpoint& file, const ModelPatch& patch, std::int64_t hidden,
                     Blocks& graph)
    : file_(file),
      patch_(patch),
      hidden_(hidden),
      graph_(graph),
      hint_(add_hint_tokens(file, patch.prefix, patch.path + ".hint", add_hint_input(patch, graph),
                            hidden, graph)) {}

Source QwenPatch::after_block(int index, const Source& img) const {
  using B = QwenPatchAdd;
  const std::string number = std::to_string(index),
                    path = patch_.path + ".double." + number + ".add",
                    at = patch_.prefix + "controlnet_blocks." + number + ".";
  Block block = graph_.add<B>(path);
  block.link(B::img, img).link(B::hint, hint_).set(B::strength, patch_.strength);
  blocks::Slots slots(file_, block, path);
  slots.fill(B::img_norm, at + "x_rms.weight", {hidden_});
  slots.fill(B::hint_norm, at + "y_rms.weight", {hidden_});
  slots.fill(B::in, at + "input_proj.weight", {hidden_, hidden_});
  slots.fill(B::in_bias, at + "input_proj.bias", {hidden_});
  slots.fill(B::made, at + "output_proj.weight", {hidden_, hidden_});
  slots.fill(B::made_bias, at + "output_proj.bias", {hidden_});
  return block[B::out];
}

int QwenDiffsynth::match(const Checkpoint& file, const Value&) {
  return file.has("controlnet_blocks.0.y_rms.weight") && file.has("img_in.weight") ? 100 : 0;
}

void QwenDiffsynth::build(const Checkpoint& file, const Value&, Blocks& graph) {
  const std::int64_t hidden = file.size("img_in.weight", 0);
  const Source hint = graph.input("hint", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
  graph.output("tokens", add_hint_tokens(file, "", "hint", hint, hidden, graph));
  add_patch_settings("qwen-image", hidden, kLatentChannels,
                     file.size("img_in.weight", 1) / kPatchArea, graph);
}

}  // namespace heddle::denoisers
