#include "hunyuan_blocks.h"

#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "embed_number.h"
#include "even_sides.h"
#include "joint_attention.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr heddle_timestep_embedding_attrs kHunyuanWaves{1, 10000, 0, 1, 0};
constexpr heddle_timestep_embedding_attrs kHunyuanGuidance{1000, 10000, 0, 1, 0};

// Sums numbers of steps (N, D) and of items (1|B, D), through SiLU: (N, 1|B, D) f32.
Tensor activated_sum(Context& ctx, const Tensor& steps, const Tensor& items) {
  const std::int64_t width = steps.size(1);
  const Tensor sum = ctx.make({steps.size(0), items.size(0), width}, HEDDLE_F32);
  ops::add_into(ctx, steps.reshape({steps.size(0), 1, width}),
                items.reshape({1, items.size(0), width}), sum);
  return ops::activate(ctx, sum, HEDDLE_ACT_SILU);
}

// The mean over the tokens of x (B, T, W), as (B, W): of heads that ask nothing, attention weighs
// all tokens alike.
Tensor mean_token(Context& ctx, const Tensor& x) {
  constexpr std::int64_t kWidest = 128;
  std::int64_t heads = 1;
  while (x.size(2) % heads != 0 || x.size(2) / heads > kWidest) ++heads;
  const Tensor split = blocks::split_heads(ops::cast(ctx, x, ctx.compute()), heads),
               nothing = ctx.make({x.size(0), 1, heads, x.size(2) / heads});
  ops::fill(ctx, nothing, 0);
  return ops::attention(ctx, nothing, split, split, {}, 1).reshape({x.size(0), x.size(2)});
}

// x (B, S, D) with a gate (1, 1|B, D) for each item.
Tensor gated_by_item(Context& ctx, const Tensor& x, const Tensor& gate, const Tensor& y) {
  return ops::gated_add(ctx, x, gate.reshape({gate.size(1), 1, gate.size(2)}), y);
}

}  // namespace

void HunyuanVector::execute(Context& ctx) {
  const bool has_first = ctx.has(first_timestep);
  const Tensor levels =
      has_first ? with_reference_level(ctx, ctx[timestep], ctx[first_timestep]) : ctx[timestep];
  Tensor time =
      embed_number(ctx, levels, kHunyuanWaves, {time_in, time_in_bias, time_out, time_out_bias});
  if (ctx.has(target))
    time = ops::add(ctx, time,
                    embed_number(ctx, ctx[target], kHunyuanWaves,
                                 {target_in, target_in_bias, target_out, target_out_bias}));
  if (!ctx.has(y)) {
    ctx[out] = ops::activate(ctx, time, HEDDLE_ACT_SILU).reshape({time.size(0), 1, time.size(1)});
    return;
  }
  const Tensor hidden =
      blocks::wide_linear(ctx, ctx[y], ctx[text_in], ctx[text_in_bias], HEDDLE_ACT_SILU);
  Tensor told = blocks::wide_linear(ctx, hidden, ctx[text_out], ctx[text_out_bias]);
  if (ctx[guidance_in]) {
    Tensor scale;
    if (ctx.has(guidance)) {
      scale = ctx[guidance];
    } else {
      scale = ctx.make({1}, HEDDLE_F32);
      ops::fill(ctx, scale, ctx[default_guidance]);
    }
    const Tensor guided =
        embed_number(ctx, scale, kHunyuanGuidance,
                     {guidance_in, guidance_in_bias, guidance_out, guidance_out_bias});
    told = ops::add(ctx, guided.size(0) > told.size(0) ? guided : told,
                    guided.size(0) > told.size(0) ? told : guided);
  }
  if (!has_first) {
    ctx[out] = activated_sum(ctx, time, told);
    return;
  }
  if (told.size(0) != 1)
    throw Error(
        HEDDLE_UNSUPPORTED,
        "a video that begins with a given frame (v2 (replace) of HunyuanImageToVideo) and " +
            std::to_string(told.size(0)) +
            " texts at once. Give the sampler one conditioning of one text.");
  ctx[out] = activated_sum(ctx, time, told).reshape({time.size(0) / 2, 2, time.size(1)});
}

void HunyuanTextVector::execute(Context& ctx) {
  const Tensor time = embed_number(ctx, ctx[timestep], kHunyuanWaves,
                                   {time_in, time_in_bias, time_out, time_out_bias});
  const Tensor hidden = blocks::wide_linear(ctx, mean_token(ctx, ctx[context]), ctx[text_in],
                                            ctx[text_in_bias], HEDDLE_ACT_SILU);
  ctx[out] =
      activated_sum(ctx, time, blocks::wide_linear(ctx, hidden, ctx[text_out], ctx[text_out_bias]));
}

void HunyuanRefiner::execute(Context& ctx) {
  const Tensor text = ctx[hidden], gates = ctx[mod];
  const std::int64_t width = text.size(2), count = ctx[heads];
  const Tensor asked = ops::layer_norm(ctx, text, ctx[norm1], ctx[norm1_bias], ctx[eps]);
  const Tensor all = ops::linear(ctx, asked, ctx[qkv], ctx[qkv_bias]);
  const Tensor seen =
      ops::attention(ctx, part_of_heads(all, 0, count), part_of_heads(all, 1, count),
                     part_of_heads(all, 2, count), {}, 1 / std::sqrt(double(width / count)));
  const Tensor first =
      gated_by_item(ctx, text, gates.slice(2, 0, width),
                    ops::linear(ctx, blocks::join_heads(seen), ctx[proj], ctx[proj_bias]));
  const Tensor raised =
      ops::linear(ctx, ops::layer_norm(ctx, first, ctx[norm2], ctx[norm2_bias], ctx[eps]), ctx[up],
                  ctx[up_bias], HEDDLE_ACT_SILU);
  ctx[out] = gated_by_item(ctx, first, gates.slice(2, width, 2 * width),
                           ops::linear(ctx, raised, ctx[down], ctx[down_bias]));
}

void HunyuanGlyphIn::execute(Context& ctx) {
  if (!ctx.has(byt5) || ctx[byt5].size(1) == 0) {
    ctx[out] = ctx.make({1, 0, ctx[last].size(0)}, HEDDLE_F32);
    return;
  }
  const Tensor normed = ops::layer_norm(ctx, ctx[byt5], ctx[norm], ctx[norm_bias], ctx[eps]);
  const Tensor first = ops::linear(ctx, normed, ctx[in], ctx[in_bias], HEDDLE_ACT_GELU);
  const Tensor second = ops::linear(ctx, first, ctx[middle], ctx[middle_bias], HEDDLE_ACT_GELU);
  ctx[out] = blocks::wide_linear(ctx, second, ctx[last], ctx[last_bias]);
}

void HunyuanJoin::execute(Context& ctx) {
  const Tensor words = ctx[text], table = ctx[kinds];
  const std::int64_t batch = words.size(0), width = words.size(2);
  const Tensor parts[] = {ctx[vision], ctx[glyphs], words};
  constexpr std::int64_t kKinds[] = {2, 1, 0};
  std::int64_t length = 0;
  for (const Tensor& part : parts) length += part.size(1);
  const Tensor all = ctx.make({batch, length, width}, HEDDLE_F32);
  std::int64_t at = 0;
  for (int i = 0; i < 3; ++i) {
    const Tensor& part = parts[i];
    if (part.size(1) == 0) continue;
    const Tensor kind = table.slice(0, kKinds[i], kKinds[i] + 1).reshape({1, 1, width});
    for (std::int64_t item = 0; item < batch; ++item) {
      const std::int64_t from = part.size(0) == 1 ? 0 : item;
      ops::add_into(ctx, part.slice(0, from, from + 1), kind,
                    all.slice(0, item, item + 1).slice(1, at, at + part.size(1)));
    }
    at += part.size(1);
  }
  ctx[out] = all;
}

void HunyuanReferenceIn::execute(Context& ctx) {
  const Tensor filter = ctx[weight];
  if (!ctx.has(reference)) {
    ctx[out] = ctx.make({1, 0, filter.size(0)}, HEDDLE_F32);
    return;
  }
  if (ctx.has(first_timestep))
    throw Error(HEDDLE_UNSUPPORTED,
                "a conditioning has a reference picture ('custom' of HunyuanImageToVideo) and a "
                "first frame that is given ('v2 (replace)'). Leave out one of the two nodes.");
  const Tensor given = ctx[reference];
  const std::int64_t items = given.size(0), channels = given.size(1), frames = given.size(2),
                     side = ctx[patch];
  const Tensor even = even_sides(
      ctx, given.reshape({items, channels * frames, given.size(3), given.size(4)}), side);
  const std::int64_t height = even.size(2), width = even.size(3);
  const Tensor pictures = ctx.make({items * frames, height, width, channels});
  ops::copy_into(ctx,
                 even.reshape({items, channels, frames, height, width}).permute({0, 2, 3, 4, 1}),
                 pictures.reshape({items, frames, height, width, channels}));
  const auto step = checked_cast<std::int32_t>(side, "patch");
  const Tensor made = blocks::wide_conv2d(ctx, pictures, filter, ctx[bias],
                                          heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  ctx[out] = made.reshape({items, frames * made.size(1) * made.size(2), made.size(3)});
}

void HunyuanReferenceJoin::execute(Context& ctx) {
  const Tensor video = ctx[img], shown = ctx[reference];
  const std::int64_t length = video.size(1), all = length + shown.size(1);
  if (all == length) {
    ctx[out] = video;
    return;
  }
  const Tensor made = ctx.make({video.size(0), all, video.size(2)}, HEDDLE_F32);
  ops::copy_into(ctx, video, tokens(made, {0, length}));
  for (std::int64_t item = 0; item < video.size(0); ++item) {
    const std::int64_t row = shown.size(0) == 1 ? 0 : item;
    ops::copy_into(ctx, shown.slice(0, row, row + 1),
                   tokens(made.slice(0, item, item + 1), {length, all}));
  }
  ctx[out] = made;
}

void HunyuanRope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t side = ctx[patch], frames = frame_count(latent),
                     rows = tokens_along(height_of(latent), side),
                     columns = tokens_along(width_of(latent), side);
  std::int64_t beside = ctx[context].size(1);
  if (ctx.has(byt5)) beside += ctx[byt5].size(1);
  if (ctx.has(vision)) beside += ctx[vision].size(1);
  const std::int64_t own = beside + frames * rows * columns;
  std::int64_t shown = 0, shown_rows = 0, shown_columns = 0;
  if (ctx.has(reference)) {
    const Tensor latent_shown = ctx[reference];
    shown = frame_count(latent_shown);
    shown_rows = tokens_along(height_of(latent_shown), side);
    shown_columns = tokens_along(width_of(latent_shown), side);
  }
  const std::int64_t cell = shown_rows * shown_columns, all = own + shown * cell;
  const Tensor ids = ctx.make({all, 3}, HEDDLE_F32);
  if (beside > 0) ops::fill(ctx, ids.slice(0, 0, beside), 0);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{frames, rows, columns}, {0, 0, 0}},
                     ids.slice(0, beside, own));
  // All of its frames lie at one place.
  for (std::int64_t f = 0; f < shown; ++f)
    ops::grid_ids_into(
        ctx, heddle_grid_ids_attrs{{1, shown_rows, shown_columns}, {-1, 0, double(columns)}},
        ids.slice(0, own + f * cell, own + (f + 1) * cell));
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

}  // namespace heddle::denoisers
