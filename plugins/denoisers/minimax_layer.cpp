#include <algorithm>
#include <limits>
#include <vector>

#include <heddle/batch_ops.hpp>
#include <heddle/checked.hpp>
#include <heddle/norm_ops.hpp>

#include "joint_attention.h"
#include "minimax_blocks.h"
#include "minimax_cubes.h"
#include "patches.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr int kMinimaxPieces = 6;

// The nth of `count` pieces of a row of mod (1, rows, count D), as (1, 1, D).
Tensor minimax_piece(const Tensor& mod, std::int64_t row, int n, int count) {
  const std::int64_t width = mod.size(2) / count;
  return mod.slice(1, row, row + 1).slice(2, n * width, (n + 1) * width);
}

// Tokens of this device that are of one kind, and what modulates them.
struct MinimaxKind {
  Range at;
  Tensor mod;
  std::int64_t row;
  Tensor weights;  // (1, n, 1): by how much, where another kind takes the rest; or empty

  Tensor piece(int n) const { return minimax_piece(mod, row, n, kMinimaxPieces); }
};

// Of this device's tokens.
std::vector<MinimaxKind> minimax_kinds(Context& ctx, std::int64_t length) {
  using B = MinimaxLayer;
  const heddle_shard shard = ctx.shard(B::hidden);
  const auto count_of = [&](const Input<Tensor>& shown) {
    return ctx.has(shown) ? ctx[shown].size(1) : 0;
  };
  const std::int64_t text = ctx[B::context].size(1), heard = text + count_of(B::references),
                     sound = heard + count_of(B::sound_references),
                     video = sound + 2 * ctx[B::audio].size(3);
  std::vector<MinimaxKind> kinds;
  const auto add = [&](std::int64_t begin, std::int64_t end, const Input<Tensor>& mod,
                       std::int64_t row, const Tensor& weights) {
    const Range at{std::clamp<std::int64_t>(begin - shard.begin, 0, length),
                   std::clamp<std::int64_t>(end - shard.begin, 0, length)};
    if (at.begin >= at.end) return;
    Tensor own;
    if (weights) {
      const std::int64_t from = at.begin + shard.begin - begin, count = at.end - at.begin;
      own = weights.slice(0, from, from + count).reshape({1, count, 1});
    }
    kinds.push_back({at, ctx[mod], row, own});
  };
  if (ctx.has(B::picture_rows)) {
    const Tensor pictures = ctx[B::picture_rows];
    if (pictures.size(0) != text)
      throw Error(HEDDLE_INVALID_ARGUMENT, "picture_rows tells of " +
                                               std::to_string(pictures.size(0)) +
                                               " tokens, the text has " + std::to_string(text));
    add(0, text, B::text_mod, 0, ops::scale_clamp(ctx, pictures, {-1, 1, 0, 1}));
    add(0, text, B::video_mod, 0, pictures);
  } else {
    add(0, text, B::text_mod, 0, {});
  }
  add(text, heard, B::video_mod, 1, {});
  add(heard, sound, B::sound_mod, 1, {});
  add(sound, video, B::sound_mod, 0, {});
  add(video, shard.total, B::video_mod, 0, {});
  return kinds;
}

// The nth norm of x: before the attention (0) or the MLP (1).
Tensor minimax_normed(Context& ctx, const Tensor& x, const std::vector<MinimaxKind>& kinds,
                      int norm) {
  const Tensor out = ctx.make(x.shape());
  for (const MinimaxKind& kind : kinds) {
    const Tensor here = tokens(x, kind.at),
                 to = kind.weights ? ctx.make(here.shape(), HEDDLE_F32) : tokens(out, kind.at);
    ops::modulated_rms_norm_into(ctx, here, kind.piece(3 * norm + 1), kind.piece(3 * norm),
                                 ctx[MinimaxLayer::eps], to);
    if (!kind.weights) continue;
    // The first of two kinds writes, the other adds.
    ops::mul_into(ctx, to, kind.weights, to);
    if (&kind == &kinds.front())
      ops::copy_into(ctx, to, tokens(out, kind.at));
    else
      ops::add_into(ctx, to, tokens(out, kind.at), tokens(out, kind.at));
  }
  return out;
}

// x plus y, gated behind the nth norm.
Tensor minimax_gated(Context& ctx, const Tensor& x, const std::vector<MinimaxKind>& kinds, int norm,
                     const Tensor& y) {
  static const Op op(HEDDLE_OP_GATED_ADD);
  const Tensor out = ctx.make_like(x);
  for (const MinimaxKind& kind : kinds) {
    const Tensor to = tokens(out, kind.at);
    const bool adds = kind.weights && &kind != &kinds.front();
    Tensor made = tokens(y, kind.at);
    if (kind.weights) {
      const Tensor weighed = ctx.make(made.shape(), HEDDLE_F32);
      ops::mul_into(ctx, made, kind.weights, weighed);
      made = weighed;
    }
    ctx.op(op, {(adds ? to : tokens(x, kind.at)).raw(), kind.piece(3 * norm + 2).raw(), made.raw()},
           {to.raw()});
  }
  return out;
}

// Tokens [begin, end) of all, normed, shifted and multiplied with a matrix; f32. mod as of
// MinimaxVideoFinal.
Tensor minimax_final(Context& ctx, const Tensor& all, Range at, const Tensor& mod, double eps,
                     const Tensor& matrix, const Tensor& bias) {
  const Tensor here = tokens(all, at), normed = ctx.make(here.shape(), HEDDLE_F32);
  ops::modulated_rms_norm_into(ctx, here, minimax_piece(mod, 0, 1, 2), minimax_piece(mod, 0, 0, 2),
                               eps, normed);
  return blocks::wide_linear(ctx, normed, matrix, bias);
}

std::int64_t minimax_tokens(const Tensor& latent) {
  return latent.size(2) * (latent.size(3) / kPatch) * (latent.size(4) / kPatch);
}

// noise - clean of what the model tells, clean - noise.
void minimax_turn_round(Context& ctx, const Tensor& rows) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  static const Op op(HEDDLE_OP_SCALE_CLAMP);
  ctx.op(op, {rows.raw()}, {rows.raw()}, heddle_scale_clamp_attrs{-1, 0, -kFar, kFar});
}

// What n heads make of rows, (B, T, n K), added up with their weights (1, n): (B, T, K) f32.
Tensor minimax_headed(Context& ctx, const Tensor& rows, const Tensor& weights) {
  const std::int64_t batch = rows.size(0), length = rows.size(1), heads = weights.size(1),
                     width = rows.size(2) / heads;
  if (heads * width != rows.size(2))
    throw Error(HEDDLE_INVALID_ARGUMENT, std::to_string(heads) +
                                             " weights of output heads, which " +
                                             std::to_string(rows.size(2)) + " numbers are not of");
  // Token by token, so that the heads' numbers are read where they lie.
  const std::int64_t tokens = batch * length;
  const Tensor each = ctx.make({tokens, 1, heads}, HEDDLE_F32);
  ops::fill(ctx, each, 0);
  ops::add_into(ctx, each, weights.reshape({1, 1, heads}), each);
  return ops::batched_product(ctx, each, rows.reshape({tokens, heads, width}), HEDDLE_F32)
      .reshape({batch, length, width});
}

// What all tokens attend to by cubes: (B, l, H, d) of this device's tokens. first (B, l, D): what
// queries are made of.
Tensor minimax_sparse(Context& ctx, const Tensor& first, const Tensor& gathered,
                      const JointShard& joint) {
  using B = MinimaxLayer;
  const std::int64_t batch = first.size(0), length = first.size(1);
  const Tensor q = part_of_heads(gathered, 0, joint.heads);
  const CubeTables tables{ctx[B::order], ctx[B::places], ctx[B::weights], ctx[B::pools]};
  const Tensor matrix = ctx[B::gate];
  const CubeAttention made =
      cube_attention(ctx, q, part_of_heads(gathered, 1, joint.heads),
                     part_of_heads(gathered, 2, joint.heads), tables, ctx[B::share], bool(matrix));
  const auto own = [&](const Tensor& all) {
    if (ctx.group().kind != HEDDLE_GROUP_SEQUENCE) return all;
    const std::int64_t heads = ctx[B::v].size(0) / all.size(3);
    const Tensor rows = ctx.make({batch, length, heads, all.size(3)});
    const heddle_all_to_all_attrs to_tokens{joint.before, joint.before + length, joint.first_head,
                                            1, 2};
    ops::all_to_all_into(ctx, all, to_tokens, rows);
    return rows;
  };
  const Tensor seen = own(made.fine);
  if (!matrix) return seen;
  const Tensor coarse = blocks::join_heads(own(made.coarse)),
               gates = ops::linear(ctx, first, matrix, {});
  ops::mul_into(ctx, gates, coarse, gates);
  const Tensor all = ctx.make(gates.shape());
  ops::add_into(ctx, blocks::join_heads(seen), gates, all);
  return blocks::split_heads(all, seen.size(2));
}

}  // namespace

void MinimaxCubes::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const auto count_of = [&](const Input<Tensor>& shown) {
    return ctx.has(shown) ? ctx[shown].size(1) : 0;
  };
  const auto tiles_told = [&](const Input<Tensor>& told, std::int64_t tokens) {
    return ctx.has(told) ? ctx[told].size(0) : tiles_of(tokens);
  };
  const std::int64_t text = ctx[context].size(1), shown = count_of(references),
                     heard = count_of(sound_references), sound = 2 * ctx[audio].size(3),
                     before = text + shown + heard + sound;
  CubeTables tables =
      cube_tables(ctx, {{latent.size(2), latent.size(3) / kPatch, latent.size(4) / kPatch}});
  tables.pools = ctx.make({tiles_of(text) + tiles_told(reference_pools, shown) +
                               tiles_told(sound_pools, heard) + tiles_of(sound),
                           before},
                          HEDDLE_F32);
  ops::fill(ctx, tables.pools, 0);
  std::int64_t tile = 0, at = 0;
  const auto add = [&](std::int64_t tokens, const Tensor& told) {
    if (told) {
      if (told.size(1) != tokens)
        throw Error(HEDDLE_INVALID_ARGUMENT, "tiles are told of " + std::to_string(told.size(1)) +
                                                 " tokens of references, there are " +
                                                 std::to_string(tokens));
      ops::copy_into(ctx, told,
                     tables.pools.slice(0, tile, tile + told.size(0)).slice(1, at, at + tokens));
      tile += told.size(0);
    } else {
      tile += add_tiles(ctx, tables.pools, tile, at, at + tokens);
    }
    at += tokens;
  };
  add(text, {});
  add(shown, ctx.has(reference_pools) ? ctx[reference_pools] : Tensor());
  add(heard, ctx.has(sound_pools) ? ctx[sound_pools] : Tensor());
  add(sound, {});
  ctx[order_out] = tables.order;
  ctx[places_out] = tables.places;
  ctx[weights_out] = tables.weights;
  ctx[pools_out] = tables.pools;
}

void MinimaxLayer::execute(Context& ctx) {
  const Tensor stream = ctx[hidden];
  const std::int64_t batch = stream.size(0), length = stream.size(1), head = ctx[q_norm].size(0),
                     width = ctx[v].size(0), heads = width / head,  // of this device
      turning = 3 * ctx[frequencies];
  const heddle_shard shard = ctx.shard(hidden);
  const std::vector<MinimaxKind> kinds = minimax_kinds(ctx, length);
  const bool is_part = ctx.group().kind == HEDDLE_GROUP_ROWS;
  const auto told = [&](const Tensor& of, const Weight& matrix) {
    return is_part ? ops::all_reduce(ctx, blocks::wide_linear(ctx, of, ctx[matrix], {}))
                   : ops::linear(ctx, of, ctx[matrix], {});
  };

  const Tensor first = minimax_normed(ctx, stream, kinds, 0);
  const Tensor asked = ops::linear(ctx, first, ctx[qk], {}),
               all = ctx.make({batch, length, 3 * width});
  ops::linear_into(ctx, first, ctx[v], {}, HEDDLE_ACT_NONE, {}, all.slice(2, 2 * width, 3 * width));
  const Tensor c = ctx[cos].slice(0, shard.begin, shard.begin + length),
               s = ctx[sin].slice(0, shard.begin, shard.begin + length);
  // Of a head the first 2 `turning` numbers turn.
  const heddle_norm_rope_half_attrs turn{ctx[eps], checked_cast<std::int32_t>(head, "a head"),
                                         checked_cast<std::int32_t>(turning, "frequencies")};
  for (int i = 0; i < 2; ++i)
    ops::norm_rope_half_into(
        ctx, blocks::split_heads(asked.slice(2, i * width, (i + 1) * width), heads),
        ctx[i == 0 ? q_norm : k_norm], c, s, turn, part_of_heads(all, i, heads));
  const JointShard joint = joint_shard(ctx, shard.begin, shard.total, heads);
  const Tensor gathered = make_gathered(ctx, all, joint, heads);
  gather_tokens(ctx, all, 0, joint, heads, gathered);
  Tensor seen;
  if (ctx.has(order) && shard.total >= ctx[least]) {
    seen = minimax_sparse(ctx, first, gathered, joint);
  } else {
    seen = ctx.make({batch, length, heads, head});
    attend(ctx, gathered, joint, seen);
  }
  const Tensor middle = minimax_gated(ctx, stream, kinds, 0, told(blocks::join_heads(seen), proj));

  const Tensor both = ops::linear(ctx, minimax_normed(ctx, middle, kinds, 1), ctx[up], {});
  const std::int64_t mlp = both.size(2) / 2;
  const Tensor raised = ctx.make({batch, length, mlp});
  ops::gated_activation_into(ctx, both.slice(2, 0, mlp), both.slice(2, mlp, 2 * mlp),
                             HEDDLE_ACT_SILU, raised);
  ctx[out] = minimax_gated(ctx, middle, kinds, 1, told(raised, down));
}

void MinimaxVideoFinal::execute(Context& ctx) {
  const Tensor latent = ctx[x], all = ctx[hidden], matrix = ctx[weight];
  const std::int64_t batch = all.size(0), frames = latent.size(2), rows = latent.size(3) / kPatch,
                     columns = latent.size(4) / kPatch, channels = latent.size(1),
                     end = all.size(1);
  Tensor packed = minimax_final(ctx, all, {end - minimax_tokens(latent), end}, ctx[mod], ctx[eps],
                                matrix, ctx[bias]);
  if (ctx.has(heads)) packed = minimax_headed(ctx, packed, ctx[heads]);
  minimax_turn_round(ctx, packed);
  const Tensor made =
      ctx.make({batch, channels, frames, latent.size(3), latent.size(4)}, latent.dtype());
  ops::copy_into(ctx, packed.reshape({batch, frames, rows, columns, channels, kPatch, kPatch}),
                 made.reshape({batch, channels, frames, rows, kPatch, columns, kPatch})
                     .permute({0, 2, 3, 5, 1, 4, 6}));
  ctx[out] = made;
}

void MinimaxSoundFinal::execute(Context& ctx) {
  const Tensor latent = ctx[audio], all = ctx[hidden], matrix = ctx[weight];
  const std::int64_t batch = all.size(0), channels = latent.size(1), sides = latent.size(2),
                     length = latent.size(3), end = all.size(1) - minimax_tokens(ctx[x]);
  Tensor rows =
      minimax_final(ctx, all, {end - sides * length, end}, ctx[mod], ctx[eps], matrix, ctx[bias]);
  if (ctx.has(heads)) rows = minimax_headed(ctx, rows, ctx[heads]);
  minimax_turn_round(ctx, rows);
  ops::mul_into(ctx, rows, ctx[gain].reshape({1, 1, 1}), rows);
  const Tensor given = ctx.make(rows.shape(), HEDDLE_F32);
  ops::copy_into(ctx, latent.permute({0, 2, 3, 1}),
                 given.reshape({batch, sides, length, channels}));
  ops::mul_into(ctx, given, ctx[kept].reshape({1, 1, 1}), given);
  ops::add_into(ctx, rows, given, rows);
  const Tensor made = ctx.make({batch, channels, sides, length}, latent.dtype());
  ops::copy_into(ctx, rows.reshape({batch, sides, length, channels}), made.permute({0, 2, 3, 1}));
  ctx[out] = made;
}

}  // namespace heddle::denoisers
