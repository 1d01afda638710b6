#include "wan_dancer_blocks.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "joint_attention.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

// Where a point of a stretched line lies between two of the given ones: `share` of the second.
struct StretchedPoint {
  std::int64_t first, second;
  double share;
};
// Source: PyTorch's interpolate(), mode linear, align_corners false.
StretchedPoint stretched_point(std::int64_t point, std::int64_t given, std::int64_t made) {
  const double at = std::max(0.0, (double(point) + 0.5) * double(given) / double(made) - 0.5);
  const auto first = std::min(std::int64_t(at), given - 1);
  return {first, std::min(first + 1, given - 1), at - double(first)};
}

void mix_into(Context& ctx, const Tensor& a, const Tensor& b, double share, const Tensor& to) {
  if (share == 0) return ops::copy_into(ctx, a, to);
  ops::copy_into(
      ctx,
      ops::combine(ctx, {{1 - share, ops::contiguous(ctx, a)}, {share, ops::contiguous(ctx, b)}}),
      to);
}

// hidden (B, S, E) -> (B, made, E).
Tensor stretched_rows(Context& ctx, const Tensor& hidden, std::int64_t made) {
  const Tensor all = ctx.make({hidden.size(0), made, hidden.size(2)}, HEDDLE_F32);
  for (std::int64_t row = 0; row < made; ++row) {
    const StretchedPoint at = stretched_point(row, hidden.size(1), made);
    mix_into(ctx, tokens(hidden, {at.first, at.first + 1}),
             tokens(hidden, {at.second, at.second + 1}), at.share, tokens(all, {row, row + 1}));
  }
  return all;
}

// rows (B, M, E) -> (B, M, E times): of each step between two numbers all that lies there at once.
Tensor stretched_numbers(Context& ctx, const Tensor& rows, std::int64_t times) {
  const std::int64_t items = rows.size(0), count = rows.size(1), width = rows.size(2);
  const Tensor all = ctx.make({items, count, width * times}, HEDDLE_F32),
               steps = all.reshape({items, count, width, times});
  const auto column = [&](std::int64_t begin, std::int64_t end, std::int64_t phase) {
    return steps.slice(2, begin, end).slice(3, phase, phase + 1);
  };
  const auto given = [&](std::int64_t begin, std::int64_t end) {
    return rows.slice(2, begin, end).reshape({items, count, end - begin, 1});
  };
  for (std::int64_t phase = 0; phase < times; ++phase) {
    // Behind the middle between it and the number before, up to that between it and the next.
    const double at = (double(phase) + 0.5) / double(times) - 0.5;
    if (at < 0) {
      ops::copy_into(ctx, given(0, 1), column(0, 1, phase));
      if (width > 1)
        mix_into(ctx, given(0, width - 1), given(1, width), 1 + at, column(1, width, phase));
    } else {
      if (width > 1)
        mix_into(ctx, given(0, width - 1), given(1, width), at, column(0, width - 1, phase));
      ops::copy_into(ctx, given(width - 1, width), column(width - 1, width, phase));
    }
  }
  return all;
}

// Adds told (1|B, M, D), each for `each` tokens, to those of hidden (B, l, D) that begin with
// number `begin` of all.
void add_moments(Context& ctx, const Tensor& hidden, const Tensor& told, std::int64_t begin,
                 std::int64_t each, const Tensor& out) {
  const std::int64_t count = hidden.size(1), width = hidden.size(2);
  for (std::int64_t at = 0; at < count;) {
    const std::int64_t moment = (begin + at) / each, within = (begin + at) % each;
    // Whole moments at once, else what is here of one.
    const std::int64_t whole = within == 0 ? (count - at) / each : 0,
                       moments = std::max<std::int64_t>(whole, 1),
                       taken = whole > 0 ? whole * each : std::min(each - within, count - at),
                       run = taken / moments;
    const auto grouped = [&](const Tensor& of) {
      return tokens(of, {at, at + taken}).reshape({1, moments, run, width});
    };
    for (std::int64_t item = 0; item < hidden.size(0); ++item) {
      const auto one = [&](const Tensor& of) {
        const std::int64_t row = of.size(0) == 1 ? 0 : item;
        return of.slice(0, row, row + 1);
      };
      ops::add_into(ctx, grouped(one(hidden)),
                    tokens(one(told), {moment, moment + moments}).reshape({1, moments, 1, width}),
                    grouped(one(out)));
    }
    at += taken;
  }
}

}  // namespace

void WanMusicIn::execute(Context& ctx) {
  if (!ctx.has(music)) {
    ctx[out] = ctx.make({1, 0, ctx[weight].size(0)}, HEDDLE_F32);
    return;
  }
  ctx[out] = blocks::wide_linear(ctx, ctx[music], ctx[weight], ctx[bias]);
}

void WanMusicLayer::execute(Context& ctx) {
  const Tensor given = ctx[hidden];
  const std::int64_t rows = given.size(1), width = given.size(2), head = width / kMusicHeads;
  if (rows == 0) {
    ctx[out] = ctx.make(given.shape(), HEDDLE_F32);
    return;
  }
  const Tensor ids = ctx.make({rows, 1}, HEDDLE_F32), places = ctx.make({rows, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{rows, 1, 1}, {0, 0, 0}}, places);
  ops::copy_into(ctx, places.slice(1, 0, 1), ids);
  const auto [cos, sin] =
      ops::rope_table(ctx, ids,
                      heddle_rope_table_attrs{
                          1, 0, {checked_cast<std::int32_t>(head, "a head"), 0, 0, 0}, ctx[theta]});
  const Tensor normed = ops::layer_norm(ctx, given, ctx[norm], ctx[norm_bias], ctx[eps]),
               all = ops::linear(ctx, normed, ctx[qkv], ctx[qkv_bias]);
  for (int part = 0; part < 2; ++part) {
    const Tensor heads = part_of_heads(all, part, kMusicHeads);
    ops::norm_rope_into(ctx, heads, {}, cos, sin, ctx[eps], heads);
  }
  const Tensor seen =
      ops::attention(ctx, part_of_heads(all, 0, kMusicHeads), part_of_heads(all, 1, kMusicHeads),
                     part_of_heads(all, 2, kMusicHeads), {}, 1 / std::sqrt(double(head)));
  const Tensor first = blocks::wide_linear(ctx, blocks::join_heads(seen), ctx[proj], ctx[proj_bias],
                                           HEDDLE_ACT_NONE, given);
  const Tensor again = ops::layer_norm(ctx, first, ctx[last_norm], ctx[last_norm_bias], ctx[eps]),
               raised = ops::linear(ctx, again, ctx[up], ctx[up_bias], HEDDLE_ACT_GELU);
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[down], ctx[down_bias], HEDDLE_ACT_NONE, first);
}

void WanMusicSpread::execute(Context& ctx) {
  const Tensor given = ctx[hidden];
  const std::int64_t all = ctx[width];
  if (given.size(1) == 0) {
    ctx[out] = ctx.make({given.size(0), 0, all}, HEDDLE_F32);
    return;
  }
  const Tensor rows = stretched_rows(ctx, given, kMusicMoments * ctx[x].size(2));
  ctx[out] = stretched_numbers(ctx, rows, all / given.size(2));
}

void WanMusicTold::execute(Context& ctx) {
  const Tensor given = ctx[moments];
  if (given.size(1) == 0) {
    ctx[out] = ctx.make(given.shape(), HEDDLE_F32);
    return;
  }
  const Tensor told = blocks::wide_linear(ctx, ops::linear(ctx, given, ctx[v], ctx[v_bias]),
                                          ctx[proj], ctx[proj_bias]);
  ctx[out] = ctx.has(strength) ? ops::mul(ctx, told, ctx[strength].reshape({1, 1, 1})) : told;
}

void WanMusicAdd::execute(Context& ctx) {
  const Tensor own = ctx[hidden], added = ctx[told], latent = ctx[x];
  const Tensor all = ctx.make(own.shape(), HEDDLE_F32);
  ctx[out] = all;
  if (added.size(1) == 0) return ops::copy_into(ctx, own, all);
  const std::int64_t rows = tokens_along(latent.size(3)), columns = tokens_along(latent.size(4)),
                     cell = rows * columns;
  if (cell % kMusicMoments != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a frame of " + std::to_string(rows) + " x " + std::to_string(columns) +
                    " tokens, of 16 pixels a side each: to go with music their number has to be a "
                    "multiple of " +
                    std::to_string(kMusicMoments) +
                    ". Change the width or the height of WanDancerVideo by 16 pixels or more.");
  add_moments(ctx, own, added, ctx.shard(hidden).begin, cell / kMusicMoments, all);
}

void WanVisionJoin::execute(Context& ctx) {
  const Tensor parts[] = {ctx[first], ctx[second]};
  for (const Tensor& part : parts)
    if (part.size(1) == 0) {
      ctx[out] = ops::contiguous(ctx, &part == parts ? parts[1] : parts[0]);
      return;
    }
  const std::int64_t items = std::max(parts[0].size(0), parts[1].size(0)),
                     before = parts[0].size(1), count = before + parts[1].size(1);
  const Tensor all = ctx.make({items, count, parts[0].size(2)}, parts[0].dtype());
  for (std::int64_t item = 0; item < items; ++item)
    for (int part = 0; part < 2; ++part) {
      const Tensor& from = parts[part];
      const std::int64_t row = from.size(0) == 1 ? 0 : item, at = part == 0 ? 0 : before;
      ops::copy_into(ctx, from.slice(0, row, row + 1),
                     tokens(all.slice(0, item, item + 1), {at, at + from.size(1)}));
    }
  ctx[out] = all;
}

void WanDancerLatentIn::execute(Context& ctx) {
  const bool lie_apart = ctx.has(frame_places);
  ctx[B::out] = wan_latent_tokens(ctx, ctx[lie_apart ? apart : B::weight],
                                  ctx[lie_apart ? apart_bias : B::bias]);
}

void WanDancerRope::execute(Context& ctx) {
  const Tensor latent = ctx[B::x];
  const std::int64_t frames = latent.size(2),
                     cell = tokens_along(latent.size(3)) * tokens_along(latent.size(4));
  const Tensor ids = wan_grid_places(ctx, latent, frames);
  if (ctx.has(frame_places)) {
    const Tensor places = ctx[frame_places];
    if (places.size(0) != frames)
      throw Error(HEDDLE_INVALID_ARGUMENT, "places of " + std::to_string(places.size(0)) +
                                               " frames beside a latent of " +
                                               std::to_string(frames) + " frames");
    const Tensor told = ctx.make({frames, cell, 1}, HEDDLE_F32);
    ops::fill(ctx, told, 0);
    ops::add_into(ctx, told, places.reshape({frames, 1, 1}), told);
    ops::copy_into(ctx, told.reshape({frames * cell, 1}), ids.slice(1, 0, 1));
  }
  const auto [c, s] = wan_rope_table(ctx, ids);
  ctx[B::cos] = c;
  ctx[B::sin] = s;
}

void WanDancerFinal::execute(Context& ctx) {
  const bool lie_apart = ctx.has(frame_places);
  ctx[B::out] =
      wan_velocity(ctx, ctx[lie_apart ? apart_mod : B::mod], ctx[B::hidden],
                   ctx[lie_apart ? apart : B::weight], ctx[lie_apart ? apart_bias : B::bias]);
}

}  // namespace heddle::denoisers
