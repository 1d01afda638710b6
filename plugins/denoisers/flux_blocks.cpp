#include "flux_blocks.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "attention_guidance.h"
#include "control.h"
#include "joint_attention.h"
#include "kept_references.h"
#include "modulated_tokens.h"
#include "patches.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

// The weights of one stream of a double block.
struct Stream {
  const Weight &qkv, &qkv_bias, &q_norm, &k_norm, &proj, &proj_bias, &up, &up_bias, &down,
      &down_bias;
};
constexpr Stream kImg{FluxDouble::img_qkv,      FluxDouble::img_qkv_bias, FluxDouble::img_q_norm,
                      FluxDouble::img_k_norm,   FluxDouble::img_proj,     FluxDouble::img_proj_bias,
                      FluxDouble::img_up,       FluxDouble::img_up_bias,  FluxDouble::img_down,
                      FluxDouble::img_down_bias};
constexpr Stream kTxt{FluxDouble::txt_qkv,      FluxDouble::txt_qkv_bias, FluxDouble::txt_q_norm,
                      FluxDouble::txt_k_norm,   FluxDouble::txt_proj,     FluxDouble::txt_proj_bias,
                      FluxDouble::txt_up,       FluxDouble::txt_up_bias,  FluxDouble::txt_down,
                      FluxDouble::txt_down_bias};

// Tokens of which those of a video's first frame have a modulation of their own. Of the tokens of
// all devices the video's `count` are the last.
ModulatedTokens modulated_first_frame(const heddle_shard& shard, std::int64_t count,
                                      std::int64_t frames, std::int64_t length, const Tensor& mod,
                                      int pieces) {
  const auto own = [&](std::int64_t token) {
    return std::clamp<std::int64_t>(token - shard.begin, 0, length);
  };
  const std::int64_t from = own(shard.total - count),
                     to = own(shard.total - count + count / frames);
  ModulatedTokens parts;
  const auto add = [&](Range at, std::int64_t row) {
    if (at.begin < at.end) parts.push_back({at, modulation(mod.slice(1, row, row + 1), pieces)});
  };
  add({0, from}, 0);
  add({from, to}, 1);
  add({to, length}, 0);
  return parts;
}

// Tokens of which the last ones of all devices, those of reference pictures, have a modulation of
// their own. B: a block. `stream`: its input; `length`: of it, on this device.
template <class B>
ModulatedTokens modulated_tokens(Context& ctx, const Input<Tensor>& stream, std::int64_t length,
                                 const Tensor& mod, int count) {
  if (ctx.has(B::reference_timestep) && ctx.has(B::first)) {
    const heddle_shard all = ctx.shard(stream);
    std::int64_t video = all.total;
    if constexpr (requires { B::patch; }) video = token_count(ctx[B::first], ctx[B::patch]);
    return modulated_first_frame(all, video, frame_count(ctx[B::first]), length, mod, count);
  }
  if (!ctx.has(B::reference_timestep) || !ctx.has(B::references))
    return {{{0, length}, modulation(mod, count)}};
  const heddle_shard shard = ctx.shard(stream);
  const std::int64_t drawn =
      std::clamp<std::int64_t>(shard.total - ctx[B::references].size(1) - shard.begin, 0, length);
  ModulatedTokens parts;
  if (drawn > 0) parts.push_back({{0, drawn}, modulation(mod.slice(1, 0, 1), count)});
  if (drawn < length) parts.push_back({{drawn, length}, modulation(mod.slice(1, 1, 2), count)});
  return parts;
}

ModulatedTokens modulated_text(Context& ctx, const Tensor& own) {
  using B = FluxDouble;
  const Tensor mod = ctx[B::txt_mod];
  return {
      {{0, own.size(1)}, modulation(ctx.has(B::reference_timestep) ? mod.slice(1, 0, 1) : mod, 6)}};
}

// qkv: the stream's tokens of the joint sequence, (B, l, 3 H d); rows: the same tokens in the
// rotary tables, which are for the tokens of all devices.
void project_stream(Context& ctx, const Stream& w, const Tensor& x, const ModulatedTokens& parts,
                    Range rows, std::int64_t heads, const Tensor& qkv) {
  const double eps = ctx[FluxDouble::eps];
  const Tensor normed = norm_tokens(ctx, x, parts, 0, eps);
  ops::linear_into(ctx, normed, ctx[w.qkv], ctx[w.qkv_bias], HEDDLE_ACT_NONE, {}, qkv);
  norm_heads(ctx, qkv, heads, ctx[w.q_norm], ctx[w.k_norm],
             ctx[FluxDouble::cos].slice(0, rows.begin, rows.end),
             ctx[FluxDouble::sin].slice(0, rows.begin, rows.end), eps);
}

// A linear layer whose inputs a group of devices may hold in parts: each multiplies its own, and
// the bias is added to the sum, which is f32 until then.
Tensor joining_linear(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (ctx.group().kind != HEDDLE_GROUP_ROWS) return ops::linear(ctx, x, weight, bias);
  const Tensor sum = ops::all_reduce(ctx, blocks::wide_linear(ctx, x, weight, {}));
  return bias ? ops::add(ctx, sum, bias.reshape({1, 1, bias.size(0)})) : sum;
}

// What comes after the attention, back on the stream.
Tensor finish_stream(Context& ctx, const Stream& w, const Tensor& x, const ModulatedTokens& parts,
                     const Tensor& attended) {
  const Tensor projected = joining_linear(ctx, attended, ctx[w.proj], ctx[w.proj_bias]);
  const Tensor middle = add_gated(ctx, x, parts, 2, projected);
  const Tensor normed = norm_tokens(ctx, middle, parts, 3, ctx[FluxDouble::eps]);
  const bool is_gated = ctx[FluxDouble::gated];
  const Tensor up = ctx.make({normed.size(0), normed.size(1), mlp_width(ctx[w.up], is_gated)});
  raise(ctx, normed, ctx[w.up], ctx[w.up_bias], is_gated, up);
  return add_gated(ctx, middle, parts, 5, joining_linear(ctx, up, ctx[w.down], ctx[w.down_bias]));
}

}  // namespace

void FluxDoubleModulation::execute(Context& ctx) {
  ctx[img] = blocks::wide_linear(ctx, ctx[vector], ctx[img_weight], ctx[img_bias]);
  ctx[txt] = blocks::wide_linear(ctx, ctx[vector], ctx[txt_weight], ctx[txt_bias]);
}

void FluxModulation::execute(Context& ctx) {
  ctx[out] = blocks::wide_linear(ctx, ctx[vector], ctx[weight], ctx[bias]);
}

// The picture's stream.
static Tensor execute_double(Context& ctx, const KeptReferences& kept) {
  using B = FluxDouble;
  const Tensor image = ctx[B::img], text = ctx[B::txt];
  const std::int64_t batch = image.size(0), width = image.size(2), text_length = text.size(1);
  const std::int64_t length = text_length + image.size(1), head = width / ctx[B::heads];
  // Of the heads and tokens of all devices, those of this one.
  const std::int64_t own_width = ctx[B::img_qkv].size(0) / 3, head_count = own_width / head;
  const heddle_shard text_shard = ctx.shard(B::txt), image_shard = ctx.shard(B::img);
  const Range text_rows{text_shard.begin, text_shard.end},
      image_rows{text_shard.total + image_shard.begin, text_shard.total + image_shard.end};
  const Range text_at{0, text_length}, image_at{text_length, length};
  const ModulatedTokens image_mod =
                            modulated_tokens<B>(ctx, B::img, image.size(1), ctx[B::img_mod], 6),
                        text_mod = modulated_text(ctx, text);

  const JointShard shard = joint_shard(ctx, text_shard.begin + image_shard.begin,
                                       text_shard.total + image_shard.total, head_count);
  const Tensor qkv = ctx.make({batch, length + kept.given(ctx), 3 * own_width});
  const Tensor gathered = make_gathered(ctx, qkv, shard, head_count);
  // The picture's tokens are many: they are on their way while the text's are computed.
  const auto project = [&](const Stream& w, const Tensor& x, const ModulatedTokens& mod, Range rows,
                           Range at) {
    if (at.begin == at.end) return;
    project_stream(ctx, w, x, mod, rows, head_count, tokens(qkv, at));
    gather_tokens(ctx, tokens(qkv, at), at.begin, shard, head_count, gathered);
  };
  project(kImg, image, image_mod, image_rows, image_at);
  project(kTxt, text, text_mod, text_rows, text_at);
  kept.pass(ctx, qkv, length, ctx.has(B::references) ? ctx[B::references].size(1) : 0);
  const Tensor attended_heads = ctx.make({batch, length, head_count, head});
  attend(ctx, gathered, shard, attended_heads);
  const Tensor attended = blocks::join_heads(attended_heads);
  if (ctx.has(B::nag) && image_at.begin < image_at.end)
    guide_attention(ctx, ctx[B::nag], tokens(attended, image_at));

  ctx[B::txt_out] = finish_stream(ctx, kTxt, text, text_mod, tokens(attended, text_at));
  return finish_stream(ctx, kImg, image, image_mod, tokens(attended, image_at));
}

void FluxDouble::execute(Context& ctx) {
  const Tensor image = execute_double(ctx, {});
  const std::int64_t first = ctx.shard(img).begin;
  const ControlPlace place{ctx[control_index], ctx[control_depth]};
  if (ctx.has(control)) add_control(ctx, image, first, ctx[control], place);
  if (ctx.has(control_first))
    add_control(ctx, image, first, ctx[control_first], {place.index, place.depth, true});
  ctx[img_out] = image;
}

void FluxKeptDouble::execute(Context& ctx) {
  ctx[B::img_out] = execute_double(ctx, {&kept, &kept_out});
}

void FluxJoin::execute(Context& ctx) {
  const Tensor text = ctx[txt], image = ctx[img];
  const std::int64_t length = text.size(1) + image.size(1);
  const Tensor all = ctx.make({image.size(0), length, image.size(2)}, image.dtype());
  if (text.size(1) > 0) ops::copy_into(ctx, text, tokens(all, {0, text.size(1)}));
  ops::copy_into(ctx, image, tokens(all, {text.size(1), length}));
  ctx[out] = all;
}

static Tensor execute_single(Context& ctx, const KeptReferences& kept) {
  using B = FluxSingle;
  const Tensor stream = ctx[B::hidden];
  const std::int64_t batch = stream.size(0), length = stream.size(1),
                     head = stream.size(2) / ctx[B::heads];
  const std::int64_t width = ctx[B::qkv].size(0) / 3,
                     head_count = width / head;  // of this device's heads
  const bool is_gated = ctx[B::gated];
  const std::int64_t mlp = mlp_width(ctx[B::up], is_gated);
  const heddle_shard shard = ctx.shard(B::hidden);
  const Tensor own_cos = ctx[B::cos].slice(0, shard.begin, shard.end),
               own_sin = ctx[B::sin].slice(0, shard.begin, shard.end);
  const std::int64_t shown = ctx.has(B::references) ? ctx[B::references].size(1) : 0;
  const ModulatedTokens parts = modulated_tokens<B>(ctx, B::hidden, length, ctx[B::mod], 3);
  const double epsilon = ctx[B::eps];
  const Tensor normed = norm_tokens(ctx, stream, parts, 0, epsilon);

  // The last projection reads attention and MLP side by side, so both write where it reads. The MLP
  // is a product of its own, not more rows of the first: its activation then costs no pass over
  // memory. Where tokens and heads change places between devices, it is computed meanwhile.
  const Tensor both = ctx.make({batch, length, width + mlp});
  const auto compute_mlp = [&] {
    raise(ctx, normed, ctx[B::up], ctx[B::up_bias], is_gated, both.slice(2, width, width + mlp));
  };
  const bool waits = ctx.group().kind == HEDDLE_GROUP_SEQUENCE;
  if (!waits) compute_mlp();
  const Tensor projected = ctx.make({batch, length + kept.given(ctx), 3 * width});
  const Tensor own = tokens(projected, {0, length});
  ops::linear_into(ctx, normed, ctx[B::qkv], ctx[B::qkv_bias], HEDDLE_ACT_NONE, {}, own);
  norm_heads(ctx, own, head_count, ctx[B::q_norm], ctx[B::k_norm], own_cos, own_sin, epsilon);
  kept.pass(ctx, projected, length, shown);
  const JointShard joint = joint_shard(ctx, shard.begin, shard.total, head_count);
  const Tensor gathered = make_gathered(ctx, projected, joint, head_count);
  gather_tokens(ctx, projected, 0, joint, head_count, gathered);
  if (waits) compute_mlp();
  const Tensor attended = both.slice(2, 0, width);
  attend(ctx, gathered, joint, blocks::split_heads(attended, head_count));
  if (ctx.has(B::nag)) {
    const std::int64_t text = shard.total - token_count(ctx[B::x], ctx[B::patch]) - shown;
    const Range image{std::clamp<std::int64_t>(text - shard.begin, 0, length), length};
    if (image.begin < image.end) guide_attention(ctx, ctx[B::nag], tokens(attended, image));
  }
  return add_gated(ctx, stream, parts, 2,
                   joining_linear(ctx, both, ctx[B::down], ctx[B::down_bias]));
}

void FluxSingle::execute(Context& ctx) {
  const Tensor made = execute_single(ctx, {});
  if (ctx.has(control)) {
    const heddle_shard shard = ctx.shard(hidden);
    const std::int64_t shown = ctx.has(references) ? ctx[references].size(1) : 0,
                       text = shard.total - token_count(ctx[x], ctx[patch]) - shown;
    add_control(ctx, made, shard.begin - text, ctx[control],
                {ctx[control_index], ctx[control_depth]});
  }
  ctx[out] = made;
}

void FluxKeptSingle::execute(Context& ctx) {
  ctx[B::out] = execute_single(ctx, {&kept, &kept_out});
}

void FluxFinal::execute(Context& ctx) {
  const Tensor latent = ctx[x], all = ctx[hidden], matrix = ctx[weight];
  const std::int64_t batch = all.size(0), height = height_of(latent), width = width_of(latent),
                     frames = frame_count(latent);
  const std::int64_t side = ctx[patch], rows = tokens_along(height, side),
                     columns = tokens_along(width, side), count = rows * columns,
                     length = all.size(1) - (ctx.has(references) ? ctx[references].size(1) : 0);
  const std::int64_t channels = matrix.size(0) / (side * side);
  const std::vector<Tensor> parts =
      modulation(ctx.has(reference_timestep) ? ctx[mod].slice(1, 0, 1) : ctx[mod], 2);
  const Tensor image = tokens(all, {length - frames * count, length});
  const Tensor normed = ctx.make(image.shape(), HEDDLE_F32);
  ops::modulated_norm_into(ctx, image, parts[0], parts[1], ctx[eps], normed);
  const Tensor packed = blocks::wide_linear(ctx, normed, matrix, ctx[bias]);

  const Tensor even =
      ctx.make({batch, channels, frames, rows * side, columns * side}, latent.dtype());
  for (std::int64_t f = 0; f < frames; ++f)
    ops::copy_into(ctx,
                   tokens(packed, {f * count, (f + 1) * count})
                       .reshape({batch, rows, columns, channels, side, side}),
                   as_patches(frame_of(even, f), side));
  const bool is_even = even.size(3) == height && even.size(4) == width;
  const Tensor picture =
      is_even ? even : ops::contiguous(ctx, even.slice(3, 0, height).slice(4, 0, width));
  // Both of a pair belong to one item of the latent.
  Shape shape = latent.shape();
  shape[1] = channels * batch / shape[0];
  ctx[out] = picture.reshape(shape);
}

}  // namespace heddle::denoisers
