#include "zimage_blocks.h"

#include <limits>
#include <utility>

#include <heddle/checked.hpp>
#include <heddle/norm_ops.hpp>

#include "embed_number.h"
#include "even_sides.h"
#include "joint_attention.h"
#include "patches.h"

namespace heddle::denoisers {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::int64_t filled_up(std::int64_t tokens, std::int64_t multiple) {
  return (tokens + multiple - 1) / multiple * multiple;
}

std::int64_t picture_tokens(const Tensor& x) {
  return tokens_along(x.size(2)) * tokens_along(x.size(3));
}

// x (B, n, K) through a linear layer, with the learned token (D) behind: (B, filled_up(n), D) f32.
Tensor embedded(Context& ctx, const Tensor& x, const Weight& weight, const Weight& bias,
                const Weight& filling, std::int64_t multiple) {
  const std::int64_t count = x.size(1), all = filled_up(count, multiple),
                     width = ctx[weight].size(0);
  if (all == count) return blocks::wide_linear(ctx, x, ctx[weight], ctx[bias]);
  const Tensor out = ctx.make({x.size(0), all, width}, HEDDLE_F32);
  ops::linear_into(ctx, x, ctx[weight], ctx[bias], HEDDLE_ACT_NONE, {}, out.slice(1, 0, count));
  const Tensor rest = out.slice(1, count, all);
  ops::fill(ctx, rest, 0);
  ops::add_into(ctx, rest, ctx[filling].reshape({1, 1, width}), rest);
  return out;
}

// A picture (B, C, H, W) of even sides as (B, H/2, W/2, 2, 2, C), without copying.
Tensor as_pixel_patches(const Tensor& x) {
  const std::int64_t rows = x.size(2) / kPatch, columns = x.size(3) / kPatch;
  return x.reshape({x.size(0), x.size(1), rows, kPatch, columns, kPatch})
      .permute({0, 2, 4, 3, 5, 1});
}

// The nth of four weights (4 D) or (1, 1, 4 D), as (D).
Tensor fourth_of(const Tensor& weights, int n) {
  const std::int64_t width = weights.count() / 4;
  return weights.reshape({4 * width}).slice(0, n * width, (n + 1) * width);
}

// Queries, keys and values of this device's tokens, one after another: (B, l, 3 H d), each head of
// keys and values as often as queries share it. rows: of the tokens in the rotary tables.
Tensor zimage_project(Context& ctx, const Tensor& normed, Range rows) {
  using B = ZImageLayer;
  const Tensor qkv = ops::linear(ctx, normed, ctx[B::qkv], {});
  const std::int64_t heads = ctx[B::heads], kv_heads = ctx[B::kv_heads], times = heads / kv_heads,
                     head = qkv.size(2) / (heads + 2 * kv_heads), queries = heads * head,
                     keys = queries + kv_heads * head, batch = qkv.size(0), length = qkv.size(1);
  const Tensor cos = ctx[B::cos].slice(0, rows.begin, rows.end),
               sin = ctx[B::sin].slice(0, rows.begin, rows.end);
  const Tensor all = times == 1 ? qkv : ctx.make({batch, length, 3 * queries});
  const Tensor k = blocks::split_heads(qkv.slice(2, queries, keys), kv_heads),
               v = blocks::split_heads(qkv.slice(2, keys, qkv.size(2)), kv_heads);
  ops::norm_rope_into(ctx, blocks::split_heads(qkv.slice(2, 0, queries), heads), ctx[B::q_norm],
                      cos, sin, ctx[B::eps], part_of_heads(all, 0, heads));
  ops::norm_rope_into(ctx, k, ctx[B::k_norm], cos, sin, ctx[B::eps], k);
  if (times == 1) return all;
  for (std::int64_t i = 0; i < times; ++i)
    for (const auto& [part, from] : {std::pair{1, k}, std::pair{2, v}})
      ops::copy_into(ctx, from.reshape({batch, length, kv_heads, 1, head}),
                     part_of_heads(all, part, heads)
                         .reshape({batch, length, kv_heads, times, head})
                         .slice(3, i, i + 1));
  return all;
}

// What this device's tokens see of all, (B, l, H d).
Tensor self_attention(Context& ctx, const Tensor& normed) {
  using B = ZImageLayer;
  const heddle_shard shard = ctx.shard(B::hidden);
  const std::int64_t heads = ctx[B::heads],
                     first = ctx[B::is_last] ? ctx[B::cos].size(0) - shard.total : 0;
  const Tensor own = zimage_project(ctx, normed, {first + shard.begin, first + shard.end});
  const JointShard joint = joint_shard(ctx, shard.begin, shard.total, heads);
  const Tensor gathered = make_gathered(ctx, own, joint, heads);
  gather_tokens(ctx, own, 0, joint, heads, gathered);
  const Tensor seen = ctx.make({own.size(0), own.size(1), heads, own.size(2) / (3 * heads)});
  attend(ctx, gathered, joint, seen);
  return blocks::join_heads(seen);
}

// x + y, y normed with this weight.
Tensor plus_normed(Context& ctx, const Tensor& x, const Tensor& y, const Tensor& weight,
                   double eps) {
  const Tensor sum = ctx.make(y.shape(), HEDDLE_F32);
  ops::modulated_rms_norm_into(ctx, y, weight.reshape({1, 1, weight.count()}), x, eps, sum);
  return sum;
}

}  // namespace

void ZImageVector::execute(Context& ctx) {
  const Tensor left = ops::scale_clamp(ctx, ctx[timestep], {-1, 1, -kNoLimit, kNoLimit});
  const Tensor time = embed_number(ctx, left, {ctx[time_scale], ctx[max_period], 0, 1, 0},
                                   {time_in, time_in_bias, time_out, time_out_bias});
  ctx[out] = time.reshape({time.size(0), 1, time.size(1)});
}

void ZImageRope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t each = ctx[multiple], text = filled_up(ctx[context].size(1), each),
                     rows = tokens_along(latent.size(2)), columns = tokens_along(latent.size(3)),
                     picture = rows * columns, all = text + filled_up(picture, each);
  const Tensor ids = ctx.make({all, 3}, HEDDLE_F32);
  if (text > 0)
    ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{text, 1, 1}, {double(ctx[first]), 0, 0}},
                       ids.slice(0, 0, text));
  ops::grid_ids_into(ctx,
                     heddle_grid_ids_attrs{{1, rows, columns}, {double(ctx[first] + text), 0, 0}},
                     ids.slice(0, text, text + picture));
  if (text + picture < all) ops::fill(ctx, ids.slice(0, text + picture, all), 0);
  const heddle_rope_table_attrs attrs{3,
                                      0,
                                      {checked_cast<std::int32_t>(ctx[axis_0], "axis_0"),
                                       checked_cast<std::int32_t>(ctx[axis_1], "axis_1"),
                                       checked_cast<std::int32_t>(ctx[axis_2], "axis_2"), 0},
                                      ctx[theta]};
  const auto [c, s] = ops::rope_table(ctx, ids, attrs);
  ctx[cos] = c;
  ctx[sin] = s;
}

void ZImageTextIn::execute(Context& ctx) {
  ctx[out] = embedded(ctx, ops::rms_norm(ctx, ctx[context], ctx[norm], ctx[eps]), weight, bias,
                      filling, ctx[multiple]);
}

void ZImageImageIn::execute(Context& ctx) {
  const Tensor latent = ctx[x], matrix = ctx[weight];
  const std::int64_t channels = latent.size(1);
  if (channels * kPatchArea != matrix.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the model takes " +
                                             std::to_string(matrix.size(1) / kPatchArea) +
                                             " latent channels, got " + std::to_string(channels));
  const Tensor patches = as_pixel_patches(even_sides(ctx, latent));
  const Tensor packed =
      ctx.make({latent.size(0), picture_tokens(latent), channels * kPatchArea}, HEDDLE_F32);
  ops::copy_into(ctx, patches, packed.reshape(patches.shape()));
  ctx[out] = embedded(ctx, packed, weight, bias, filling, ctx[multiple]);
}

void ZImageModulation::execute(Context& ctx) {
  const Tensor read =
      ctx[activates] ? ops::activate(ctx, ctx[vector], HEDDLE_ACT_SILU) : ctx[vector];
  const Tensor raw = blocks::wide_linear(ctx, read, ctx[weight], ctx[bias]);
  const std::int64_t width = raw.size(2) / 4;
  const Tensor made = ctx.make(raw.shape(), HEDDLE_F32);
  for (int i = 0; i < 4; ++i) {
    const Tensor number = raw.slice(2, i * width, (i + 1) * width);
    const bool is_gate = i % 2 == 1;
    const Tensor factor = is_gate ? ops::activate(ctx, number, HEDDLE_ACT_TANH)
                                  : ops::scale_clamp(ctx, number, {1, 1, -kNoLimit, kNoLimit});
    ops::mul_into(ctx, factor, fourth_of(ctx[norms], i).reshape({1, 1, width}),
                  made.slice(2, i * width, (i + 1) * width));
  }
  ctx[out] = made;
}

void ZImageLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden], weights = ctx.has(mod) ? ctx[mod] : ctx[norms];
  const double epsilon = ctx[eps];
  const Tensor seen = self_attention(ctx, ops::rms_norm(ctx, x, fourth_of(weights, 0), epsilon));
  const Tensor middle =
      plus_normed(ctx, x, ops::linear(ctx, seen, ctx[proj], {}), fourth_of(weights, 1), epsilon);
  const Tensor both =
      ops::linear(ctx, ops::rms_norm(ctx, middle, fourth_of(weights, 2), epsilon), ctx[up], {});
  const std::int64_t width = both.size(2) / 2;
  const Tensor raised = ctx.make({both.size(0), both.size(1), width});
  ops::gated_activation_into(ctx, both.slice(2, 0, width), both.slice(2, width, 2 * width),
                             HEDDLE_ACT_SILU, raised);
  ctx[out] = plus_normed(ctx, middle, ops::linear(ctx, raised, ctx[down], {}),
                         fourth_of(weights, 3), epsilon);
}

void ZImageJoin::execute(Context& ctx) {
  const Tensor text = ctx[txt], image = ctx[img];
  const std::int64_t batch = image.size(0), before = text.size(1), all = before + image.size(1);
  if (text.size(0) != 1 && text.size(0) != batch)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "context is for " + std::to_string(text.size(0)) + " pictures, the latent holds " +
                    std::to_string(batch) + ". Give one context, or one for each picture.");
  const Tensor joined = ctx.make({batch, all, image.size(2)}, HEDDLE_F32);
  ops::copy_into(ctx, image, joined.slice(1, before, all));
  for (std::int64_t b = 0; b < batch; b += text.size(0))
    ops::copy_into(ctx, text, joined.slice(0, b, b + text.size(0)).slice(1, 0, before));
  ctx[out] = joined;
}

void ZImageFinalModulation::execute(Context& ctx) {
  const Tensor activated = ops::activate(ctx, ctx[vector], HEDDLE_ACT_SILU);
  ctx[out] = blocks::wide_linear(ctx, activated, ctx[weight], ctx[bias]);
}

void ZImageFinal::execute(Context& ctx) {
  const Tensor latent = ctx[x], all = ctx[hidden], matrix = ctx[weight];
  const std::int64_t batch = all.size(0), height = latent.size(2), width = latent.size(3),
                     rows = tokens_along(height), columns = tokens_along(width),
                     channels = matrix.size(0) / kPatchArea;
  const std::int64_t first = all.size(1) - filled_up(rows * columns, ctx[multiple]);
  const Tensor image = all.slice(1, first, first + rows * columns);
  const Tensor scale = ctx[mod], shift = ctx.make(scale.shape(), HEDDLE_F32);
  ops::fill(ctx, shift, 0);
  const Tensor normed = ctx.make(image.shape(), HEDDLE_F32);
  ops::modulated_norm_into(ctx, image, shift, scale, ctx[eps], normed);
  const Tensor packed = blocks::wide_linear(ctx, normed, matrix, ctx[bias]);
  const Tensor opposite = ops::scale_clamp(ctx, packed, {-1, 0, -kNoLimit, kNoLimit});
  const Tensor even = ctx.make({batch, channels, rows * kPatch, columns * kPatch}, latent.dtype());
  const Tensor patches = as_pixel_patches(even);
  ops::copy_into(ctx, opposite.reshape(patches.shape()), patches);
  const bool is_even = even.size(2) == height && even.size(3) == width;
  ctx[out] = is_even ? even : ops::contiguous(ctx, even.slice(2, 0, height).slice(3, 0, width));
}

}  // namespace heddle::denoisers
