#include "ltx2_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <heddle/checked.hpp>
#include <heddle/norm_ops.hpp>

#include "cross_attention.h"
#include "joint_attention.h"
#include "ltx2_stream.h"
#include "ltxv_guides.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr double kLtx2Unbound = std::numeric_limits<double>::infinity();

void ltx2_scale_into(Context& ctx, const Tensor& ids, double factor, double addend, double least) {
  static const Op op(HEDDLE_OP_SCALE_CLAMP);
  ctx.op(op, {ids.raw()}, {ids.raw()},
         heddle_scale_clamp_attrs{factor, addend, least, kLtx2Unbound});
}

struct Ltx2Turn {
  Tensor cos, sin;  // of all tokens
  std::int64_t heads;
  bool is_split;
  double eps;
};

// Turns queries or keys (B, l, I) of some of the tokens, normalised over all heads, where they lie.
void turn_in_place(Context& ctx, const Tensor& x, const Tensor& weight, const Ltx2Turn& turn,
                   const heddle_shard& shard) {
  const Tensor whole = blocks::split_heads(x, 1), cos = turn.cos.slice(0, shard.begin, shard.end),
               sin = turn.sin.slice(0, shard.begin, shard.end);
  if (turn.is_split) {
    const auto head = checked_cast<std::int32_t>(x.size(2) / turn.heads, "a head");
    ops::norm_rope_half_into(ctx, whole, weight, cos, sin, {turn.eps, head, head / 2}, whole);
  } else {
    ops::norm_rope_into(ctx, whole, weight, cos, sin, turn.eps, whole);
  }
}

// A linear layer's rows into the nth of `count` parts of the last axis of `out`.
Tensor ltx2_part(Context& ctx, const Tensor& x, const Weight& matrix, const Weight& bias, int n,
                 int count, const Tensor& out) {
  const std::int64_t width = out.size(2) / count;
  const Tensor part = out.slice(2, n * width, (n + 1) * width);
  ops::linear_into(ctx, x, ctx[matrix], ctx[bias], HEDDLE_ACT_NONE, {}, part);
  return part;
}

// What queries saw in heads, (B, l, H, d), each head times its gate by `asking`, the input of the
// queries, where the model has gates: (B, l, I).
Tensor ltx2_gated(Context& ctx, const Tensor& seen, const Tensor& asking, const Tensor& gates,
                  const Tensor& gates_bias) {
  if (!gates) return blocks::join_heads(seen);
  // 2 sigmoid(z) = 1 + tanh(z / 2).
  const Tensor logits = blocks::wide_linear(ctx, asking, gates, gates_bias);
  ltx2_scale_into(ctx, logits, 0.5, 0, -kLtx2Unbound);
  ops::activate_into(ctx, logits, HEDDLE_ACT_TANH, logits);
  ltx2_scale_into(ctx, logits, 1, 1, -kLtx2Unbound);
  const Tensor out = ctx.make(seen.shape());
  ops::mul_into(ctx, seen, logits.reshape({seen.size(0), seen.size(1), seen.size(2), 1}), out);
  return blocks::join_heads(out);
}

// What a stream's tokens on this device see of all of its tokens, (B, l, H, d).
Tensor ltx2_see_own(Context& ctx, const Tensor& asking, const heddle_shard& shard,
                    const Ltx2Turn& turn) {
  using B = Ltx2Attend;
  const std::int64_t width = ctx[B::v].size(0);
  const Tensor qkv = ctx.make({asking.size(0), asking.size(1), 3 * width});
  turn_in_place(ctx, ltx2_part(ctx, asking, B::q, B::q_bias, 0, 3, qkv), ctx[B::q_norm], turn,
                shard);
  turn_in_place(ctx, ltx2_part(ctx, asking, B::k, B::k_bias, 1, 3, qkv), ctx[B::k_norm], turn,
                shard);
  ltx2_part(ctx, asking, B::v, B::v_bias, 2, 3, qkv);
  const JointShard joint = joint_shard(ctx, shard.begin, shard.total, turn.heads);
  const Tensor gathered = make_gathered(ctx, qkv, joint, turn.heads);
  gather_tokens(ctx, qkv, 0, joint, turn.heads, gathered);
  const Tensor seen = ctx.make({asking.size(0), asking.size(1), turn.heads, width / turn.heads});
  if (!ctx.has(B::guide_weights)) {
    attend(ctx, gathered, joint, seen);
    return seen;
  }
  const GuidedAttention guided(ctx, ctx[B::guide_weights], shard.total);
  attend(ctx, gathered, joint, seen,
         [&](const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t from,
             const Tensor& to) { guided.into(q, k, v, from, to); });
  return seen;
}

Tensor ltx2_told(Context& ctx, const Tensor& seen, const Weight& matrix, const Weight& bias) {
  return ops::linear(ctx, seen, ctx[matrix], ctx[bias]);
}

}  // namespace

void Ltx2TextPart::execute(Context& ctx) {
  const Tensor all = ctx[context];
  const std::int64_t from = ctx[begin], to = from + ctx[width];
  if (all.size(2) < to)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the text is " + std::to_string(all.size(2)) + " wide, of which " +
                    std::to_string(from) + " to " + std::to_string(to) +
                    " are read. Encode it with the text encoder of LTX 2.");
  const Tensor part = ctx.make({all.size(0), all.size(1), to - from});
  ops::copy_into(ctx, all.slice(2, from, to), part);
  ctx[out] = part;
}

void Ltx2AudioIn::execute(Context& ctx) {
  const Tensor latent = ctx[audio], matrix = ctx[weight];
  const std::int64_t batch = latent.size(0), channels = latent.size(1), length = latent.size(2),
                     bands = latent.size(3);
  if (channels * bands != matrix.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model takes " + std::to_string(matrix.size(1)) +
                    " numbers of sound at a time, got " + std::to_string(channels) +
                    " channels of " + std::to_string(bands) +
                    " bands. Make the latent with LTXVEmptyLatentAudio, or encode it with the "
                    "audio autoencoder of LTX 2.");
  const Tensor before = ctx.has(voice) ? ctx[voice] : Tensor();
  const std::int64_t first = before ? before.size(1) : 0;
  const Tensor rows = ctx.make({batch, first + length, channels * bands}, HEDDLE_F32);
  if (before && before.size(2) != rows.size(2))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the voice is told by " + std::to_string(before.size(2)) +
                    " numbers at a time, the model takes " + std::to_string(rows.size(2)) +
                    ". Link LTXVReferenceAudio to the audio autoencoder of LTX 2.");
  for (std::int64_t i = 0; before && i < batch; ++i) {
    const std::int64_t from = before.size(0) == 1 ? 0 : i;
    ops::copy_into(ctx, before.slice(0, from, from + 1),
                   rows.slice(0, i, i + 1).slice(1, 0, first));
  }
  ops::copy_into(ctx, latent.permute({0, 2, 1, 3}),
                 rows.slice(1, first, first + length).reshape({batch, length, channels, bands}));
  ctx[out] = blocks::wide_linear(ctx, rows, matrix, ctx[bias]);
}

void Ltx2AudioFinal::execute(Context& ctx) {
  const Tensor latent = ctx[audio], every = ctx[hidden], told = ctx[mod];
  const std::int64_t first = every.size(1) - latent.size(2);
  const Tensor all = every.slice(1, first, every.size(1));
  const Tensor normed = ltx2_final_norm(
      ctx, all, told.size(1) == 1 ? told : told.slice(1, first, told.size(1)), ctx[eps]);
  const Tensor rows = blocks::wide_linear(ctx, normed, ctx[weight], ctx[bias]);
  const Tensor made = ctx.make(latent.shape(), latent.dtype());
  ops::copy_into(ctx,
                 rows.reshape({latent.size(0), latent.size(2), latent.size(1), latent.size(3)}),
                 made.permute({0, 2, 1, 3}));
  ctx[out] = made;
}

void Ltx2Rope::execute(Context& ctx) {
  const Tensor x = ctx[latent];
  const bool is_video = x.rank() == 5;
  const std::int64_t frames = x.size(2), rows = is_video ? x.size(3) : 1,
                     columns = is_video ? x.size(4) : 1,
                     before = ctx.has(voice) ? ctx[voice].size(1) : 0, pairs = ctx[width] / 2,
                     along = ctx[axes], each = ctx[width] / (2 * along),
                     still = pairs - along * each;
  Tensor ids = ctx.make({before + frames * rows * columns, 3}, HEDDLE_F32);
  const Tensor earlier = ids.slice(0, 0, before);
  if (before > 0)
    ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{before, 1, 1}, {0, 0, 0}}, earlier);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{frames, rows, columns}, {0, 0, 0}},
                     ids.slice(0, before, ids.size(0)));
  const double most[] = {ctx[most_time], ctx[most_height], ctx[most_width]};
  for (int axis = 0; axis < int(along); ++axis) {
    const Tensor at = ids.slice(1, axis, axis + 1);
    if (axis > 0) {
      ltx2_scale_into(ctx, at, ctx[side_pixels], ctx[side_pixels] / 2, 0);
    } else {
      ltx2_scale_into(ctx, at, ctx[step], ctx[offset], ctx[least]);
      // The last one ends at step R + 1 - step, a token before 0.
      if (before > 0)
        ltx2_scale_into(ctx, earlier.slice(1, 0, 1), 1, -(ctx[step] * double(before) + 1),
                        -kLtx2Unbound);
      if (ctx.has(guide_frames)) put_guides(ctx, ctx[guide_frames], ids, frames, true);
      if (ctx.has(frame_time))
        ops::mul_into(ctx, at, ctx[frame_time].reshape({1, 1}), at);
      else
        ltx2_scale_into(ctx, at, ctx[unit], 0, -kLtx2Unbound);
    }
    ltx2_scale_into(ctx, at, 2 / most[axis], -1, -kLtx2Unbound);
    ltx2_scale_into(ctx, at, std::numbers::pi / 2, 0, -kLtx2Unbound);
  }
  if (ctx.has(token_rows)) ids = chosen_rows(ctx, ids, ctx[token_rows]);
  const std::int64_t count = ids.size(0);
  // The table's frequencies are base^(-i / n), here theta^(i / (n - 1)).
  const double base =
      each > 1 ? std::pow(ctx[theta], -double(each) / double(each - 1)) : ctx[theta];
  const auto dim = checked_cast<std::int32_t>(2 * each, "width");
  const Tensor places = along == 3 ? ids : ops::contiguous(ctx, ids.slice(1, 0, along));
  const auto [c, s] = ops::rope_table(
      ctx, places, {checked_cast<std::int32_t>(along, "axes"), 0, {dim, dim, dim, 0}, base});
  const auto put = [&, &c = c](const Tensor& table, double beside) {
    const Tensor whole = ctx.make({count, pairs}, HEDDLE_F32);
    if (still > 0) ops::fill(ctx, whole.slice(1, 0, still), beside);
    ops::copy_into(ctx, table.reshape({count, along, each}),
                   whole.slice(1, still, pairs).reshape({count, each, along}).permute({0, 2, 1}));
    return whole;
  };
  ctx[cos] = put(c, 1);
  ctx[sin] = put(s, 0);
}

void Ltx2CrossModulation::execute(Context& ctx) {
  const Tensor given = ctx[shared], one = ctx[gate], added = ctx[table];
  const std::int64_t width = one.size(2), steps = one.size(0);
  const Tensor made = ctx.make({steps, 1, 5 * width}, HEDDLE_F32),
               rows = added.reshape({1, 1, 5 * width});
  ops::add_into(ctx, given, rows.slice(2, 0, 4 * width), made.slice(2, 0, 4 * width));
  ops::add_into(ctx, one, rows.slice(2, 4 * width, 5 * width), made.slice(2, 4 * width, 5 * width));
  for (const int scale : {0, 2})
    ltx2_scale_into(ctx, made.slice(2, scale * width, (scale + 1) * width), 1, 1, -kLtx2Unbound);
  ctx[out] = made;
}

void Ltx2Keys::execute(Context& ctx) {
  Tensor text = ctx[seen];
  const std::int64_t width = ctx[v].size(0), items = text.size(0), batch = ctx[x].size(0);
  if (const Tensor rows = ctx[table]) {
    const std::int64_t wide = text.size(2);
    Tensor told = rows.reshape({1, 1, 2 * wide});
    if (ctx.has(shared)) {
      const Tensor sum = ctx.make({1, 1, 2 * wide}, HEDDLE_F32);
      ops::add_into(ctx, ctx[shared], told, sum);
      told = sum;
    }
    const Tensor factor = ctx.make({1, 1, wide}, HEDDLE_F32), moved = ctx.make_like(text),
                 raised = ctx.make(text.shape(), HEDDLE_F32);
    ops::copy_into(ctx, told.slice(2, wide, 2 * wide), factor);
    ltx2_scale_into(ctx, factor, 1, 1, -kLtx2Unbound);
    ops::mul_into(ctx, text, factor, raised);
    ops::add_into(ctx, raised, told.slice(2, 0, wide), moved);
    text = moved;
  }
  const Tensor made = ctx.make({items, text.size(1), 2 * width});
  ops::rms_norm_into(ctx, ops::linear(ctx, text, ctx[k], ctx[k_bias]), ctx[norm], ctx[eps],
                     made.slice(2, 0, width));
  ops::linear_into(ctx, text, ctx[v], ctx[v_bias], HEDDLE_ACT_NONE, {},
                   made.slice(2, width, 2 * width));
  const heddle_shard shard = ctx.shard(seen);
  const Tensor whole = ops::all_gather(ctx, made, 1, shard.begin, shard.total);
  if (items == batch) {
    ctx[out] = whole;
    return;
  }
  const Tensor all = ctx.make({batch, whole.size(1), 2 * width});
  for (std::int64_t item = 0; item < batch; ++item)
    ops::copy_into(ctx, whole, all.slice(0, item, item + 1));
  ctx[out] = all;
}

void Ltx2Attend::execute(Context& ctx) {
  using B = Ltx2Attend;
  const Tensor x = ctx[hidden];
  const std::int64_t count = ctx[heads];
  const heddle_shard shard = ctx.shard(hidden);
  const Ltx2Modulated told(ctx, ctx[mod], x, shard, ctx[eps]);
  const Tensor asking = told.normed(x, 0);
  const Tensor found = ltx2_gated(
      ctx, ltx2_see_own(ctx, asking, shard, {ctx[cos], ctx[sin], count, ctx[is_split], ctx[eps]}),
      asking, ctx[gates], ctx[gates_bias]);
  const Tensor first = told.gated(x, 2, ltx2_told(ctx, found, B::proj, B::proj_bias));

  constexpr int kOfText = 6;
  const bool is_told = told.pieces() > kOfText;
  const Tensor reading = is_told ? told.normed(first, kOfText) : told.plain(first);
  const Tensor kv = ctx[text_kv];
  const std::int64_t width = kv.size(2) / 2;
  const Tensor q = blocks::split_heads(
      ops::rms_norm(ctx, ops::linear(ctx, reading, ctx[text_q], ctx[text_q_bias]), ctx[text_q_norm],
                    ctx[eps]),
      count);
  const Tensor seen = ops::attention(ctx, q, blocks::split_heads(kv.slice(2, 0, width), count),
                                     blocks::split_heads(kv.slice(2, width, 2 * width), count), {},
                                     1 / std::sqrt(double(q.size(3))));
  const Tensor read = ltx2_gated(ctx, seen, reading, ctx[text_gates], ctx[text_gates_bias]);
  ctx[out] = is_told
                 ? told.gated(first, kOfText + 2, ltx2_told(ctx, read, text_proj, text_proj_bias))
                 : blocks::wide_linear(ctx, read, ctx[text_proj], ctx[text_proj_bias],
                                       HEDDLE_ACT_NONE, first);
}

void Ltx2Cross::execute(Context& ctx) {
  using B = Ltx2Cross;
  const Tensor x = ctx[hidden], y = ctx[other];
  const heddle_shard shard = ctx.shard(hidden), others_shard = ctx.shard(other);
  const std::int64_t count = ctx[heads], inner = ctx[v].size(0);
  const auto piece = checked_cast<int>(ctx[first], "first");
  const Ltx2Modulated own(ctx, ctx[mod], x, shard, ctx[eps], 5),
      others(ctx, ctx[other_mod], y, others_shard, ctx[eps], 5);
  // Here the scale comes first.
  const Tensor asking = own.normed(x, piece + 1, piece), seen = others.normed(y, piece + 1, piece);
  const Tensor asked = ctx.make({x.size(0), x.size(1), inner}),
               kv = ctx.make({y.size(0), y.size(1), 2 * inner});
  turn_in_place(ctx, ltx2_part(ctx, asking, B::q, B::q_bias, 0, 1, asked), ctx[q_norm],
                {ctx[cos], ctx[sin], count, ctx[is_split], ctx[eps]}, shard);
  turn_in_place(ctx, ltx2_part(ctx, seen, B::k, B::k_bias, 0, 2, kv), ctx[k_norm],
                {ctx[other_cos], ctx[other_sin], count, ctx[is_split], ctx[eps]}, others_shard);
  ltx2_part(ctx, seen, B::v, B::v_bias, 1, 2, kv);
  const Tensor found = ltx2_gated(ctx, attend_across(ctx, asked, shard, kv, others_shard, count),
                                  asking, ctx[gates], ctx[gates_bias]);
  ctx[out] = own.gated(x, 4, ltx2_told(ctx, found, B::proj, B::proj_bias));
}

void Ltx2Mlp::execute(Context& ctx) {
  using B = Ltx2Mlp;
  const Tensor x = ctx[hidden];
  const Ltx2Modulated told(ctx, ctx[mod], x, ctx.shard(hidden), ctx[eps]);
  const Tensor raised =
      ops::linear(ctx, told.normed(x, 3), ctx[up], ctx[up_bias], HEDDLE_ACT_GELU_TANH);
  ctx[out] = told.gated(x, 5, ltx2_told(ctx, raised, B::down, B::down_bias));
}

}  // namespace heddle::denoisers
