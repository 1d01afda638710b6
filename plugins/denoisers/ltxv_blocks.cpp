#include "ltxv_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <heddle/checked.hpp>
#include <heddle/norm_ops.hpp>

#include "embed_number.h"
#include "joint_attention.h"
#include "ltxv_guides.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr double kLtxvUnbound = std::numeric_limits<double>::infinity();
constexpr int kLtxvPieces = 6;

// The nth of `count` pieces of mod (1, F, count D), as (1, F, D).
Tensor ltxv_piece(const Tensor& mod, int n, int count) {
  const std::int64_t width = mod.size(2) / count;
  return mod.slice(2, n * width, (n + 1) * width);
}
Tensor ltxv_row(const Tensor& rows, std::int64_t frame) { return rows.slice(1, frame, frame + 1); }

// This device's tokens, from `begin` on, of `total` in all; rows of numbers are for all of them, or
// for those of each of several frames.
struct LtxvFrames {
  std::int64_t begin, total, frames;

  // Calls of(tokens of this device in one frame, frame); count: of its tokens.
  template <class Of>
  void each(std::int64_t count, Of&& of) const {
    const std::int64_t size = total / frames;
    for (std::int64_t frame = 0; frame < frames; ++frame) {
      const Range here{std::max(frame * size - begin, std::int64_t{0}),
                       std::min((frame + 1) * size - begin, count)};
      if (here.begin < here.end) of(here, frame);
    }
  }
};
LtxvFrames ltxv_frames(const Tensor& mod, std::int64_t begin, std::int64_t total) {
  const std::int64_t frames = mod.size(1);
  if (total % frames != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the noise of " + std::to_string(frames) +
                    " frames is told, of which the latent's " + std::to_string(total) +
                    " tokens are none. Give the noise mask as many frames as the latent has.");
  return {begin, total, frames};
}

// Before the attention (0) or the MLP (3): x in a norm without a mean, scaled and shifted.
Tensor ltxv_modulated(Context& ctx, const Tensor& x, int first, const LtxvFrames& frames) {
  using B = LtxvLayer;
  const Tensor mod = ctx[B::mod], shift = ltxv_piece(mod, first, kLtxvPieces),
               factor = ltxv_piece(mod, first + 1, kLtxvPieces);
  const Tensor out = ctx.make(x.shape());
  frames.each(x.size(1), [&](Range here, std::int64_t frame) {
    ops::modulated_rms_norm_into(ctx, tokens(x, here), ltxv_row(factor, frame),
                                 ltxv_row(shift, frame), ctx[B::eps], tokens(out, here));
  });
  return out;
}

// x plus y times the nth piece of the modulation.
Tensor ltxv_gated(Context& ctx, const Tensor& x, int n, const Tensor& y, const LtxvFrames& frames) {
  static const Op op(HEDDLE_OP_GATED_ADD);
  const Tensor gate = ltxv_piece(ctx[LtxvLayer::mod], n, kLtxvPieces), out = ctx.make_like(x);
  frames.each(x.size(1), [&](Range here, std::int64_t frame) {
    ctx.op(op, {tokens(x, here).raw(), ltxv_row(gate, frame).raw(), tokens(y, here).raw()},
           {tokens(out, here).raw()});
  });
  return out;
}

// Queries, keys and values of this device's tokens, (B, l, 3 D).
Tensor ltxv_project(Context& ctx, const Tensor& x, const heddle_shard& shard) {
  using B = LtxvLayer;
  const std::int64_t width = ctx[B::v].size(0);
  const Tensor qk = ops::linear(ctx, x, ctx[B::qk], ctx[B::qk_bias]);
  const Tensor all = ctx.make({x.size(0), x.size(1), 3 * width});
  const Tensor cos = ctx[B::cos].slice(0, shard.begin, shard.end),
               sin = ctx[B::sin].slice(0, shard.begin, shard.end);
  for (int i = 0; i < 2; ++i)
    ops::norm_rope_into(ctx, blocks::split_heads(qk.slice(2, i * width, (i + 1) * width), 1),
                        ctx[i == 0 ? B::q_norm : B::k_norm], cos, sin, ctx[B::head_eps],
                        blocks::split_heads(all.slice(2, i * width, (i + 1) * width), 1));
  ops::linear_into(ctx, x, ctx[B::v], ctx[B::v_bias], HEDDLE_ACT_NONE, {},
                   all.slice(2, 2 * width, 3 * width));
  return all;
}

// What these tokens find in the text, (B, l, D).
Tensor ltxv_look_at_text(Context& ctx, const Tensor& x, std::int64_t heads) {
  using B = LtxvLayer;
  const Tensor kv = ctx[B::text_kv];
  const std::int64_t width = x.size(2);
  const Tensor q = blocks::split_heads(
      ops::rms_norm(ctx, ops::linear(ctx, x, ctx[B::text_q], ctx[B::text_q_bias]),
                    ctx[B::text_q_norm], ctx[B::head_eps]),
      heads);
  const Tensor k = blocks::split_heads(kv.slice(2, 0, width), heads),
               v = blocks::split_heads(kv.slice(2, width, 2 * width), heads);
  return blocks::join_heads(
      ops::attention(ctx, q, k, v, {}, 1 / std::sqrt(double(width) / double(heads))));
}

// A place p in [0, 1) as what frequencies turn by, from one axis of ids (L, 1).
void ltxv_scale_into(Context& ctx, const Tensor& ids, double factor, double addend, double least) {
  static const Op op(HEDDLE_OP_SCALE_CLAMP);
  ctx.op(op, {ids.raw()}, {ids.raw()},
         heddle_scale_clamp_attrs{factor, addend, least, kLtxvUnbound});
}

}  // namespace

void LtxvVector::execute(Context& ctx) {
  const Tensor levels = ctx[timestep];
  const std::int64_t steps = levels.size(0);
  Tensor seen = levels;
  std::int64_t frames = 1;
  if (ctx.has(frame_noise)) {
    const Tensor noise = ctx[frame_noise];
    frames = noise.size(0);
    seen = ctx.make({steps, frames}, HEDDLE_F32);
    ops::mul_into(ctx, levels.reshape({steps, 1}), noise.reshape({1, frames}), seen);
    seen = seen.reshape({steps * frames});
  }
  const Tensor made = embed_number(ctx, seen, {ctx[time_scale], ctx[max_period], 0, 1, 0},
                                   {time_in, time_in_bias, time_out, time_out_bias});
  ctx[out] = made.reshape({steps, frames, made.size(1)});
}

void LtxvModulation::execute(Context& ctx) {
  const Tensor given = ctx[shared], added = ctx[table];
  const std::int64_t all = added.count(), each = given.size(2);
  const Tensor made = ctx.make({given.size(0), given.size(1), all}, HEDDLE_F32);
  for (std::int64_t at = 0; at < all; at += each)
    ops::add_into(ctx, given, added.reshape({1, 1, all}).slice(2, at, at + each),
                  made.slice(2, at, at + each));
  const auto pieces = checked_cast<int>(added.size(0), "pieces");
  for (int scale = 1; pieces >= kLtxvPieces && scale < pieces; scale += 3)
    ltxv_scale_into(ctx, ltxv_piece(made, scale, pieces), 1, 1, -kLtxvUnbound);
  ctx[out] = made;
}

void LtxvLatentIn::execute(Context& ctx) {
  const Tensor latent = ctx[x], matrix = ctx[weight];
  if (latent.size(1) != matrix.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model takes " + std::to_string(matrix.size(1)) + " latent channels, got " +
                    std::to_string(latent.size(1)) +
                    ". Make the latent with EmptyLTXVLatentVideo, or encode it with the "
                    "autoencoder of LTX-Video.");
  const std::int64_t batch = latent.size(0), frames = latent.size(2), height = latent.size(3),
                     width = latent.size(4), channels = latent.size(1);
  const Tensor rows = ctx.make({batch, frames * height * width, channels}, HEDDLE_F32);
  ops::copy_into(ctx, latent.permute({0, 2, 3, 4, 1}),
                 rows.reshape({batch, frames, height, width, channels}));
  const Tensor given = ctx.has(token_rows) ? chosen_rows(ctx, rows, ctx[token_rows]) : rows;
  const Tensor hidden = blocks::wide_linear(ctx, given, matrix, ctx[bias]);
  if (const Tensor mark = ctx[marker]) {
    const Tensor first = hidden.slice(1, 0, height * width);
    ops::add_into(ctx, first, mark.reshape({1, 1, mark.size(1)}), first);
  }
  ctx[out] = hidden;
}

void LtxvRope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t frames = latent.size(2), rows = latent.size(3), columns = latent.size(4),
                     pairs = ctx[width] / 2, each = ctx[width] / 6, still = pairs - 3 * each;
  Tensor ids = ctx.make({frames * rows * columns, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{frames, rows, columns}, {0, 0, 0}}, ids);
  const double most[] = {ctx[most_time], ctx[most_height], ctx[most_width]};
  for (int axis = 0; axis < 3; ++axis) {
    const Tensor at = ids.slice(1, axis, axis + 1);
    if (axis == 0) {
      const double step = ctx[frame_pictures];
      ltxv_scale_into(ctx, at, step, ctx[causal] ? 1 - step : 0, 0);
      if (ctx.has(guide_frames)) put_guides(ctx, ctx[guide_frames], ids, frames, false);
      ops::mul_into(ctx, at, ctx[frame_time].reshape({1, 1}), at);
    } else {
      ltxv_scale_into(ctx, at, ctx[side_pixels], 0, 0);
    }
    ltxv_scale_into(ctx, at, 2 / most[axis], -1, -kLtxvUnbound);
    ltxv_scale_into(ctx, at, std::numbers::pi / 2, 0, -kLtxvUnbound);
  }
  if (ctx.has(token_rows)) ids = chosen_rows(ctx, ids, ctx[token_rows]);
  const std::int64_t count = ids.size(0);
  // The table's frequencies are base^(-i / n), here theta^(i / (n - 1)).
  const double base =
      each > 1 ? std::pow(ctx[theta], -double(each) / double(each - 1)) : ctx[theta];
  const auto dim = checked_cast<std::int32_t>(2 * each, "width");
  const auto [c, s] = ops::rope_table(ctx, ids, {3, 0, {dim, dim, dim, 0}, base});
  const auto put = [&](const Tensor& table, double beside) {
    const Tensor whole = ctx.make({count, pairs}, HEDDLE_F32);
    if (still > 0) ops::fill(ctx, whole.slice(1, 0, still), beside);
    ops::copy_into(ctx, table.reshape({count, 3, each}),
                   whole.slice(1, still, pairs).reshape({count, each, 3}).permute({0, 2, 1}));
    return whole;
  };
  ctx[cos] = put(c, 1);
  ctx[sin] = put(s, 0);
}

void LtxvLayer::execute(Context& ctx) {
  using B = LtxvLayer;
  const Tensor x = ctx[hidden];
  const heddle_shard shard = ctx.shard(hidden);
  const std::int64_t count = ctx[heads], head = ctx[v].size(0) / count;
  const LtxvFrames frames = ltxv_frames(ctx[mod], shard.begin, shard.total);

  const Tensor own = ltxv_project(ctx, ltxv_modulated(ctx, x, 0, frames), shard);
  const JointShard joint = joint_shard(ctx, shard.begin, shard.total, count);
  const Tensor gathered = make_gathered(ctx, own, joint, count);
  gather_tokens(ctx, own, 0, joint, count, gathered);
  const Tensor seen = ctx.make({x.size(0), x.size(1), count, head});
  if (ctx.has(guide_weights)) {
    const GuidedAttention guided(ctx, ctx[guide_weights], shard.total);
    attend(ctx, gathered, joint, seen,
           [&](const Tensor& q, const Tensor& k, const Tensor& values, std::int64_t from,
               const Tensor& to) { guided.into(q, k, values, from, to); });
  } else {
    attend(ctx, gathered, joint, seen);
  }
  const Tensor told = ops::linear(ctx, blocks::join_heads(seen), ctx[B::proj], ctx[B::proj_bias]);
  const Tensor first = ltxv_gated(ctx, x, 2, told, frames);

  const Tensor second =
      blocks::wide_linear(ctx, ltxv_look_at_text(ctx, first, count), ctx[text_proj],
                          ctx[text_proj_bias], HEDDLE_ACT_NONE, first);

  const Tensor raised = ops::linear(ctx, ltxv_modulated(ctx, second, 3, frames), ctx[up],
                                    ctx[up_bias], HEDDLE_ACT_GELU_TANH);
  ctx[out] =
      ltxv_gated(ctx, second, 5, ops::linear(ctx, raised, ctx[down], ctx[down_bias]), frames);
}

void LtxvFinal::execute(Context& ctx) {
  const Tensor latent = ctx[x], all = ctx[hidden], told = ctx[mod], matrix = ctx[weight];
  const std::int64_t batch = all.size(0), frames = latent.size(2), height = latent.size(3),
                     width = latent.size(4), channels = matrix.size(0);
  const Tensor normed = ctx.make(all.shape(), HEDDLE_F32);
  const Tensor shift = ltxv_piece(told, 0, 2), scale = ltxv_piece(told, 1, 2);
  ltxv_frames(told, 0, all.size(1)).each(all.size(1), [&](Range here, std::int64_t frame) {
    ops::modulated_norm_into(ctx, tokens(all, here), ltxv_row(shift, frame), ltxv_row(scale, frame),
                             ctx[eps], tokens(normed, here));
  });
  Tensor rows = blocks::wide_linear(ctx, normed, matrix, ctx[bias]);
  if (ctx.has(token_places)) rows = rows_or_zeros(ctx, rows, ctx[token_places]);
  const Tensor made = ctx.make({batch, channels, frames, height, width}, latent.dtype());
  ops::copy_into(ctx, rows.reshape({batch, frames, height, width, channels}),
                 made.permute({0, 2, 3, 4, 1}));
  ctx[out] = made;
}

}  // namespace heddle::denoisers
