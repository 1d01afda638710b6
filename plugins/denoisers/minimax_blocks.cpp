#include "minimax_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <heddle/batch_ops.hpp>
#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "embed_number.h"
#include "patches.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/minimax_latents.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr double kMinimaxUnbound = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMinimaxRows = 2;  // of a vector: what is made, what is shown

// Of times (N) between the rows of a table (G, E): (N, E), f32. Each row counts by how near it is.
Tensor between_rows(Context& ctx, const Tensor& times, const Tensor& table) {
  const std::int64_t steps = times.size(0), grid = table.size(0);
  const Tensor ids = ctx.make({grid, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{grid, 1, 1}, {0, 0, 0}}, ids);
  const Tensor places = ops::scale_clamp(ctx, times.reshape({steps, 1}),
                                         {1 - double(grid), 0, -kMinimaxUnbound, kMinimaxUnbound});
  const Tensor apart = ctx.make({steps, grid}, HEDDLE_F32);
  const Tensor zeros = ctx.make({steps, grid}, HEDDLE_F32);
  ops::fill(ctx, zeros, 0);
  ops::add_into(ctx, zeros, ops::contiguous(ctx, ids.slice(1, 0, 1)).reshape({1, grid}), apart);
  ops::add_into(ctx, apart, places, apart);
  const Tensor above = ops::scale_clamp(ctx, apart, {1, 0, 0, kMinimaxUnbound}),
               below = ops::scale_clamp(ctx, apart, {-1, 0, 0, kMinimaxUnbound});
  const Tensor near =
      ops::scale_clamp(ctx, ops::add(ctx, above, below), {-1, 1, 0, kMinimaxUnbound});
  const Tensor rows = ctx.make(table.shape(), HEDDLE_F32);
  ops::copy_into(ctx, table, rows);
  return ops::batched_product(ctx, near.reshape({1, steps, grid}),
                              rows.reshape({1, grid, table.size(1)}), HEDDLE_F32)
      .reshape({steps, table.size(1)});
}

// Queries, keys and values (B, T, 3 H d) of tokens that do not turn.
Tensor still_heads(Context& ctx, const Tensor& x, std::int64_t heads) {
  using B = MinimaxTextLayer;
  const Tensor qkv = ops::linear(ctx, x, ctx[B::qkv], {});
  const std::int64_t width = qkv.size(2) / 3;
  for (int i = 0; i < 2; ++i) {
    const Tensor part = blocks::split_heads(qkv.slice(2, i * width, (i + 1) * width), heads);
    ops::norm_rope_into(ctx, part, ctx[i == 0 ? B::q_norm : B::k_norm], {}, {}, ctx[B::eps], part);
  }
  return qkv;
}

void put_column(Context& ctx, const Tensor& ids, std::int64_t begin, std::int64_t end, int axis,
                double value) {
  ops::fill(ctx, ids.slice(0, begin, end).slice(1, axis, axis + 1), value);
}

}  // namespace

void MinimaxVector::execute(Context& ctx) {
  const Tensor levels = ctx[level];
  const std::int64_t steps = levels.size(0);
  const Tensor own = levels.reshape({steps, 1}), both = ctx.make({steps, kMinimaxRows}, HEDDLE_F32);
  static const Op scale(HEDDLE_OP_SCALE_CLAMP);
  const auto put = [&](std::int64_t row, double most) {
    ctx.op(scale, {own.raw()}, {both.slice(1, row, row + 1).raw()},
           heddle_scale_clamp_attrs{1, 0, 0, most});
  };
  put(0, 1);
  put(1, ctx[pinned]);
  const Tensor times = ops::scale_clamp(ctx, both, {-1, 1, 0, 1}).reshape({kMinimaxRows * steps});
  Tensor made;
  if (const Tensor rows = ctx[table])
    made = between_rows(ctx, times, rows);
  else
    made = ops::activate(ctx,
                         embed_number(ctx, times, {1, ctx[max_period], 0, 1, 0},
                                      NumberLayers{time_in, time_in_bias, time_out, time_out_bias}),
                         HEDDLE_ACT_SILU);
  ctx[out] = made.reshape({steps, kMinimaxRows, made.size(1)});
}

void MinimaxModulation::execute(Context& ctx) {
  const Tensor given = ctx[vector], weights = ctx[norms];
  const std::int64_t steps = given.size(0), count = ctx[rows], all = ctx[weight].size(0),
                     pieces = all == 2 * weights.size(0) ? 2 : 6, width = all / pieces,
                     each = pieces == 2 ? 2 : 3;
  const Tensor seen =
      count == given.size(1) ? given : ops::contiguous(ctx, given.slice(1, 0, count));
  const Tensor made =
      blocks::wide_linear(ctx, seen.reshape({steps * count, given.size(2)}), ctx[weight], ctx[bias])
          .reshape({steps, count, all});
  const Tensor factors = ctx.make({weights.size(0)}, HEDDLE_F32);
  ops::copy_into(ctx, weights, factors);
  static const Op scale(HEDDLE_OP_SCALE_CLAMP);
  for (std::int64_t norm = 0; norm * each < pieces; ++norm) {
    const std::int64_t at = (norm * each + 1) * width;
    const Tensor told = made.slice(2, at, at + width);
    ctx.op(scale, {told.raw()}, {told.raw()},
           heddle_scale_clamp_attrs{1, 1, -kMinimaxUnbound, kMinimaxUnbound});
    ops::mul_into(ctx, told,
                  factors.slice(0, norm * width, (norm + 1) * width).reshape({1, 1, width}), told);
  }
  ctx[out] = made;
}

void MinimaxTextIn::execute(Context& ctx) {
  ctx[out] = blocks::wide_linear(ctx, ctx[context], ctx[weight], ctx[bias]);
}

void MinimaxTextLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden], weights = ctx[norms];
  const std::int64_t width = x.size(2), head = ctx[q_norm].size(0),
                     heads = ctx[qkv].size(0) / (3 * head), inner = heads * head;
  const auto normed = [&](const Tensor& from, std::int64_t norm) {
    return ops::rms_norm(ctx, from, weights.slice(0, norm * width, (norm + 1) * width), ctx[eps]);
  };
  const Tensor all = still_heads(ctx, normed(x, 0), heads);
  const auto third = [&](std::int64_t i) {
    return blocks::split_heads(all.slice(2, i * inner, (i + 1) * inner), heads);
  };
  const Tensor seen =
      ops::attention(ctx, third(0), third(1), third(2), {}, 1 / std::sqrt(double(head)));
  const Tensor middle =
      blocks::wide_linear(ctx, blocks::join_heads(seen), ctx[proj], {}, HEDDLE_ACT_NONE, x);
  const Tensor both = ops::linear(ctx, normed(middle, 1), ctx[up], {});
  const std::int64_t mlp = both.size(2) / 2;
  const Tensor raised = ctx.make({x.size(0), x.size(1), mlp});
  ops::gated_activation_into(ctx, both.slice(2, 0, mlp), both.slice(2, mlp, 2 * mlp),
                             HEDDLE_ACT_SILU, raised);
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[down], {}, HEDDLE_ACT_NONE, middle);
}

void MinimaxVideoIn::execute(Context& ctx) {
  const Tensor latent = ctx[x], matrix = ctx[weight];
  const std::int64_t batch = latent.size(0), channels = latent.size(1), frames = latent.size(2),
                     rows = latent.size(3) / kPatch, columns = latent.size(4) / kPatch;
  if (channels * kPatchArea != matrix.size(1) || latent.size(3) % kPatch != 0 ||
      latent.size(4) % kPatch != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model takes videos of " + std::to_string(matrix.size(1) / kPatchArea) +
                    " latent channels with even sides, got " + std::to_string(channels) + " of " +
                    std::to_string(latent.size(3)) + " x " + std::to_string(latent.size(4)) +
                    ". Make the latent with EmptyMiniMaxH3LatentAV.");
  const Tensor packed =
      ctx.make({batch, frames * rows * columns, channels * kPatchArea}, HEDDLE_F32);
  ops::copy_into(ctx,
                 latent.reshape({batch, channels, frames, rows, kPatch, columns, kPatch})
                     .permute({0, 2, 3, 5, 1, 4, 6}),
                 packed.reshape({batch, frames, rows, columns, channels, kPatch, kPatch}));
  ctx[out] = blocks::wide_linear(ctx, packed, matrix, ctx[bias]);
}

void MinimaxSoundIn::execute(Context& ctx) {
  const Tensor latent = ctx[audio], matrix = ctx[weight];
  const std::int64_t batch = latent.size(0), channels = latent.size(1), sides = latent.size(2),
                     length = latent.size(3);
  if (channels != matrix.size(1) || sides != 2)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model takes sound of " + std::to_string(matrix.size(1)) +
                    " latent channels for each of two loudspeakers, got " +
                    std::to_string(channels) + " for each of " + std::to_string(sides) +
                    ". Make the latent with EmptyMiniMaxH3LatentAV.");
  const Tensor rows = ctx.make({batch, sides * length, channels}, HEDDLE_F32);
  ops::copy_into(ctx, latent.permute({0, 2, 3, 1}), rows.reshape({batch, sides, length, channels}));
  ops::mul_into(ctx, rows, ctx[carry].reshape({1, 1, 1}), rows);
  ctx[out] = blocks::wide_linear(ctx, rows, matrix, ctx[bias]);
}

void MinimaxShownIn::execute(Context& ctx) {
  const Tensor matrix = ctx[weight];
  if (!ctx.has(rows)) {
    ctx[out] = ctx.make({1, 0, matrix.size(0)}, HEDDLE_F32);
    return;
  }
  const Tensor shown = ctx[rows];
  if (shown.size(2) != matrix.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "what is shown has tokens of " + std::to_string(shown.size(2)) +
                    " numbers, the model reads " + std::to_string(matrix.size(1)) +
                    ". Encode it with the autoencoders of MiniMax H3.");
  ctx[out] = blocks::wide_linear(ctx, shown, matrix, ctx[bias]);
}

void MinimaxJoin::execute(Context& ctx) {
  const Tensor drawn = ctx[video];
  const std::int64_t batch = drawn.size(0), width = drawn.size(2);
  const Tensor read = ctx[txt], normed = ctx.make(read.shape(), HEDDLE_F32);
  ops::rms_norm_into(ctx, read, ctx[norm], ctx[eps], normed);
  const Tensor parts[] = {normed, ctx[references], ctx[sound_references], ctx[sound], drawn};
  std::int64_t length = 0;
  for (const Tensor& part : parts) length += part.size(1);
  const Tensor all = ctx.make({batch, length, width}, HEDDLE_F32);
  std::int64_t at = 0;
  for (const Tensor& part : parts) {
    const std::int64_t count = part.size(1);
    if (count == 0) continue;
    const Tensor to = all.slice(1, at, at + count);
    if (part.size(0) == batch)
      ops::copy_into(ctx, part, to);
    else
      for (std::int64_t item = 0; item < batch; ++item)
        ops::copy_into(ctx, part, to.slice(0, item, item + 1));
    at += count;
  }
  ctx[out] = all;
}

void MinimaxRope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t text = ctx[context].size(1), length = ctx[audio].size(3),
                     frames = latent.size(2), rows = latent.size(3) / kPatch,
                     columns = latent.size(4) / kPatch;
  const auto count_of = [&](const Input<Tensor>& places) {
    return ctx.has(places) ? ctx[places].size(0) : 0;
  };
  const std::int64_t heard = text + count_of(positions), sound = heard + count_of(sound_positions),
                     video = sound + 2 * length, total = video + frames * rows * columns;
  const Tensor ids = ctx.make({total, 3}, HEDDLE_F32);
  ops::fill(ctx, ids, 0);
  static const Op scale(HEDDLE_OP_SCALE_CLAMP);
  const auto count_up = [&](std::int64_t begin, std::int64_t count, double first) {
    const Tensor counted = ctx.make({count, 3}, HEDDLE_F32);
    ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{count, 1, 1}, {first, 0, 0}}, counted);
    ops::copy_into(ctx, counted.slice(1, 0, 1), ids.slice(0, begin, begin + count).slice(1, 0, 1));
  };
  if (text > 0) count_up(0, text, 0);
  const auto shown = [&](const Input<Tensor>& places, std::int64_t begin) {
    if (!ctx.has(places)) return;
    const Tensor to = ids.slice(0, begin, begin + ctx[places].size(0));
    ops::copy_into(ctx, ctx[places], to);
    const Tensor times = to.slice(1, 0, 1);
    ctx.op(scale, {times.raw()}, {times.raw()},
           heddle_scale_clamp_attrs{1, double(text), -kMinimaxUnbound, kMinimaxUnbound});
  };
  shown(positions, text);
  shown(sound_positions, heard);
  const double root = std::sqrt(double(latent.size(3) * latent.size(4)));
  const blocks::MinimaxSide down = blocks::MinimaxSide::of(latent.size(3), root),
                            across = blocks::MinimaxSide::of(latent.size(4), root);
  for (int side = 0; side < 2; ++side) {
    const std::int64_t begin = sound + side * length;
    count_up(begin, length, double(text));
    put_column(ctx, ids, begin, begin + length, 2,
               across.first + (side == 0 ? 0 : across.step * double(columns - 1)));
  }
  const Tensor drawn = ids.slice(0, video, total);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{frames, rows, columns}, {0, 0, 0}}, drawn);
  for (const auto& [axis, side] : {std::pair{1, down}, std::pair{2, across}}) {
    const Tensor column = drawn.slice(1, axis, axis + 1);
    ctx.op(scale, {column.raw()}, {column.raw()},
           heddle_scale_clamp_attrs{side.step, side.first, -kMinimaxUnbound, kMinimaxUnbound});
  }
  for (std::int64_t frame = 0; frame < frames; ++frame)
    put_column(ctx, drawn, frame * rows * columns, (frame + 1) * rows * columns, 0,
               double(text) +
                   blocks::kMinimaxPictureTime * double(blocks::minimax_pictures_before(frame)));
  if (ctx.has(media_start)) {
    const Tensor times = ids.slice(0, sound, total).slice(1, 0, 1);
    ops::add_into(ctx, times, ctx[media_start].reshape({1, 1}), times);
  }
  const auto dim = checked_cast<std::int32_t>(2 * ctx[frequencies], "frequencies");
  const auto [c, s] = ops::rope_table(ctx, ids, {3, 0, {dim, dim, dim, 0}, ctx[theta]});
  ctx[cos] = c;
  ctx[sin] = s;
}

}  // namespace heddle::denoisers
