#include "rtdetr_decoder_blocks.h"

#include <cfloat>
#include <cmath>

#include <heddle/batch_ops.hpp>
#include <heddle/row_ops.hpp>

#include "wide_math.h"

namespace heddle::detection {
namespace {

constexpr double kRtdetrEps = 1e-5;        // of layer norms
constexpr double kMostLogit = 11.5129155;  // ln(0.99999 / 0.00001)
constexpr double kScale = 8, kHalf = 0.5;  // D-FINE's reg_scale and up
constexpr std::int64_t kBest = 4;

// factor * x + shift between two numbers.
Tensor between(Context& ctx, const Tensor& x, double factor, double shift, double low = -FLT_MAX,
               double high = FLT_MAX) {
  return ops::scale_clamp(ctx, x, {factor, shift, low, high});
}

Tensor column(Context& ctx, const Tensor& x, int axis, std::int64_t at) {
  return ops::contiguous(ctx, x.slice(axis, at, at + 1));
}

// 0, 1, ... (n) f32.
Tensor counted(Context& ctx, std::int64_t n) {
  const Tensor ids = ctx.make({n, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, {{n, 1, 1}, {0, 0, 0}}, ids);
  return column(ctx, ids, 1, 0).reshape({n});
}

// Rows (R, N) f32 -> their softmax, f32: attention to a matrix with ones on its diagonal.
Tensor softmax(Context& ctx, const Tensor& rows) {
  const std::int64_t count = rows.size(0), n = rows.size(1);
  const Tensor line = ctx.make({n * (n + 1)});
  ops::fill(ctx, line, 0);
  ops::fill(ctx, line.reshape({n, n + 1}).slice(1, 0, 1), 1);
  const Tensor ones = line.slice(0, 0, n * n).reshape({1, n, 1, n});
  const Tensor queries = ctx.make({1, count, 1, n}), keys = ctx.make({1, n, 1, n}),
               out = ctx.make({1, count, 1, n}, HEDDLE_F32);
  ops::fill(ctx, queries, 0);
  ops::fill(ctx, keys, 0);
  ops::attention_into(ctx, queries, keys, ones, rows.reshape({1, 1, count, n}), 0, ops::Mask::none,
                      out);
  return out.reshape({count, n});
}

// Three matrices with a SiLU between them, plus residual.
struct ThreeLayers {
  const Weight &first, &first_bias, &second, &second_bias, &third, &third_bias;
};
Tensor three_layers(Context& ctx, const Tensor& x, const ThreeLayers& m,
                    const Tensor& residual = {}) {
  const Tensor one = product(ctx, x, ctx[m.first], ctx[m.first_bias], HEDDLE_ACT_SILU),
               two = product(ctx, one, ctx[m.second], ctx[m.second_bias], HEDDLE_ACT_SILU);
  return product(ctx, two, ctx[m.third], ctx[m.third_bias], HEDDLE_ACT_NONE, residual);
}

// D-FINE's distances, (n, 1) f32.
Tensor distances_of(Context& ctx, std::int64_t n) {
  const Tensor made = ctx.make({n, 1}, HEDDLE_F32);
  const double edge = kHalf * kScale, step = std::pow(edge + 1, 2 / double(n - 3));
  const std::int64_t middle = n / 2;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t away = std::abs(i - middle);
    const double far = away == middle ? 2 * edge : std::pow(step, double(away)) - 1;
    ops::fill(ctx, made.slice(0, i, i + 1), i < middle ? -far : far);
  }
  return made;
}

}  // namespace

void RtdetrQueries::execute(Context& ctx) {
  const Tensor grids[] = {ctx[g0], ctx[g1], ctx[g2]};
  const std::int64_t channels = grids[0].size(3), wanted = ctx[count];
  std::int64_t cells = 0;
  for (const Tensor& grid : grids) cells += grid.size(1) * grid.size(2);
  const Tensor memory = ctx.make({1, cells, channels});
  std::int64_t begin = 0;
  for (const Tensor& grid : grids) {
    const std::int64_t part = grid.size(1) * grid.size(2);
    ops::copy_into(ctx, ops::contiguous(ctx, grid).reshape({1, part, channels}),
                   memory.slice(1, begin, begin + part));
    begin += part;
  }
  ops::mul_into(ctx, memory, ctx[valid], memory);
  const Tensor codes = normalised(ctx, product(ctx, memory, ctx[proj], ctx[proj_bias]), ctx[norm],
                                  ctx[norm_bias], kRtdetrEps);
  const Tensor scores = product(ctx, codes, ctx[score], ctx[score_bias]);
  const Tensor best = ops::match_rows(ctx, scores, wanted).moved;
  const auto chosen = [&](const Tensor& rows) {
    const Tensor made = ctx.make({1, wanted, rows.size(2)}, HEDDLE_F32);
    ops::embedding_into(ctx, rows.reshape({cells, rows.size(2)}), best, made);
    return made;
  };
  const Tensor own = ctx[file_anchors];
  const Tensor around =
      own && own.size(1) == cells ? ops::cast(ctx, own, HEDDLE_F32) : ctx[anchors];
  const Tensor made = chosen(codes);
  const Tensor told = three_layers(
      ctx, made, {first, first_bias, second, second_bias, third, third_bias}, chosen(around));
  ctx[queries] = made;
  ctx[logits] = told;
  ctx[boxes] = sigmoid(ctx, told);
}

void RtdetrPlaces::execute(Context& ctx) {
  constexpr double kMost = 10;
  const Tensor one = product(ctx, ctx[boxes], ctx[first], ctx[first_bias], HEDDLE_ACT_SILU);
  ctx[out] = between(ctx, product(ctx, one, ctx[second], ctx[second_bias]), 1, 0, -kMost, kMost);
}

void RtdetrSample::execute(Context& ctx) {
  constexpr double kOffsetScale = 0.5;
  constexpr std::int64_t kCorners = 4;
  const Tensor asked = sum(ctx, ctx[x], ctx[places]), box = ops::contiguous(ctx, ctx[boxes]),
               grids[] = {ctx[g0], ctx[g1], ctx[g2]};
  const std::int64_t queries = asked.size(1), channels = asked.size(2), head_count = ctx[heads],
                     width = channels / head_count, rows = queries * head_count;
  const Tensor moved = product(ctx, asked, ctx[offsets], ctx[offsets_bias])
                           .reshape({queries, head_count, kRtdetrAllPoints, 2});
  const Tensor share =
      softmax(ctx,
              product(ctx, asked, ctx[shares], ctx[shares_bias]).reshape({rows, kRtdetrAllPoints}))
          .reshape({queries, head_count, kRtdetrAllPoints, 1});
  const Tensor head = between(ctx, counted(ctx, head_count), 1, 0).reshape({1, head_count, 1, 1});
  const std::int64_t all = kRtdetrAllPoints * kCorners;
  const Tensor weights = ctx.make({rows, 1, all}), values = ctx.make({rows, all, width});
  std::int64_t begin = 0, column_at = 0;
  for (int level = 0; level < kRtdetrLevels; ++level) {
    const Tensor grid = grids[level];
    const std::int64_t points = kRtdetrPoints[level], line = grid.size(2);
    const Shape shape{queries, head_count, points, 1};
    Tensor cell[2], part[2];  // of x and y: the first of two cells, and how far it is behind
    for (int axis = 0; axis < 2; ++axis) {
      const auto side = double(grid.size(axis == 0 ? 2 : 1) - 2);
      const auto of_box = [&](std::int64_t at) {
        return column(ctx, box, 2, at).reshape({queries, 1, 1, 1});
      };
      const Tensor offset =
          ops::contiguous(ctx, moved.slice(2, begin, begin + points).slice(3, axis, axis + 1));
      const Tensor away = between(ctx, ops::mul(ctx, offset, of_box(2 + axis)),
                                  kOffsetScale / double(points) * side, 0);
      // Cell 0 of the border ends where the picture begins, and its middle is half a cell before.
      const Tensor place = between(ctx, ops::add(ctx, away, between(ctx, of_box(axis), side, 0.5)),
                                   1, 0, 0, side + 1);
      const Tensor whole = ops::cast(ctx, between(ctx, place, 1, 0, 0, side), HEDDLE_I32);
      cell[axis] = ops::cast(ctx, whole, HEDDLE_F32);
      part[axis] = ops::combine(ctx, {{1, place}, {-1, cell[axis]}});
    }
    const Tensor first_row = ops::add(
        ctx,
        ops::combine(ctx, {{double(head_count), cell[0]}, {double(line * head_count), cell[1]}}),
        head);
    const Tensor table =
        ops::contiguous(ctx, grid).reshape({grid.size(1) * line * head_count, width});
    const Tensor part_share = ops::contiguous(ctx, share.slice(2, begin, begin + points));
    for (std::int64_t corner = 0; corner < kCorners; ++corner) {
      const bool right = corner % 2 == 1, below = corner / 2 == 1;
      const Tensor ids = ops::cast(
          ctx,
          between(ctx, first_row, 1, double(((below ? line : 0) + (right ? 1 : 0)) * head_count)),
          HEDDLE_I32);
      ops::embedding_into(ctx, table, ids.reshape({rows, points}),
                          values.slice(1, column_at, column_at + points));
      const Tensor across = right ? part[0] : between(ctx, part[0], -1, 1),
                   down = below ? part[1] : between(ctx, part[1], -1, 1);
      const Tensor weight = ops::mul(ctx, ops::mul(ctx, across, down), part_share);
      ops::copy_into(ctx, weight.reshape({rows, 1, points}),
                     weights.slice(2, column_at, column_at + points));
      column_at += points;
    }
    begin += points;
  }
  ctx[out] = ops::batched_product(ctx, weights, values, HEDDLE_F32).reshape({1, queries, channels});
}

void RtdetrGate::execute(Context& ctx) {
  const Tensor a = ctx[x], b = ctx[y];
  const std::int64_t count = a.size(1), width = a.size(2);
  const Tensor both = ctx.make({1, count, 2 * width});
  ops::copy_into(ctx, a, both.slice(2, 0, width));
  ops::copy_into(ctx, b, both.slice(2, width, 2 * width));
  const Tensor gates = sigmoid(ctx, product(ctx, both, ctx[gate], ctx[gate_bias]));
  const Tensor kept = ctx.make({1, count, width}, HEDDLE_F32),
               added = ctx.make({1, count, width}, HEDDLE_F32);
  ops::mul_into(ctx, gates.slice(2, 0, width), a, kept);
  ops::mul_into(ctx, gates.slice(2, width, 2 * width), b, added);
  ctx[out] = normalised(ctx, ops::add(ctx, kept, added), ctx[norm], ctx[norm_bias], kRtdetrEps);
}

void RtdetrFirstBoxes::execute(Context& ctx) {
  const Tensor around = between(ctx, ctx[logits], 1, 0, -kMostLogit, kMostLogit);
  ctx[out] = sigmoid(
      ctx, three_layers(ctx, ctx[x], {first, first_bias, second, second_bias, third, third_bias},
                        around));
}

void RtdetrBoxes::execute(Context& ctx) {
  const Tensor from = ctx.has(before) ? sum(ctx, ctx[x], ctx[before]) : ctx[x];
  const Tensor told =
      three_layers(ctx, from, {first, first_bias, second, second_bias, third, third_bias},
                   ctx.has(corners_before) ? ctx[corners_before] : Tensor());
  const std::int64_t queries = told.size(1), n = told.size(2) / 4, rows = 4 * queries;
  const Tensor likely = softmax(ctx, told.reshape({rows, n}));
  const Tensor lengths =
      ctx[table] ? ops::cast(ctx, ctx[table], HEDDLE_F32).reshape({n, 1}) : distances_of(ctx, n);
  Tensor inverse = ctx.make({1, 1, 1}, HEDDLE_F32);  // 1 / |scale|
  if (ctx[scale]) {
    const Tensor own = ops::cast(ctx, ctx[scale], HEDDLE_F32).reshape({1, 1, 1});
    inverse = ops::rsqrt(ctx, ops::mul(ctx, own, own));
  } else {
    ops::fill(ctx, inverse, 1 / kScale);
  }
  const Tensor mean = ops::batched_product(ctx, likely.reshape({1, rows, n}),
                                           lengths.reshape({1, n, 1}), HEDDLE_F32)
                          .reshape({1, queries, 4});
  // How far left, top, right and bottom are from the middle, in widths and heights.
  const Tensor away = between(ctx, ops::mul(ctx, mean, inverse), 1, kHalf);
  const Tensor old = ops::contiguous(ctx, ctx[begun]), made = ctx.make({1, queries, 4}, HEDDLE_F32);
  for (int axis = 0; axis < 2; ++axis) {
    const Tensor size = column(ctx, old, 2, axis + 2), low = column(ctx, away, 2, axis),
                 high = column(ctx, away, 2, axis + 2);
    const Tensor shift = ops::mul(ctx, size, ops::combine(ctx, {{0.5, high}, {-0.5, low}}));
    ops::add_into(ctx, column(ctx, old, 2, axis), shift, made.slice(2, axis, axis + 1));
    ops::mul_into(ctx, size, ops::combine(ctx, {{1, high}, {1, low}}),
                  made.slice(2, axis + 2, axis + 3));
  }
  ctx[corners] = told;
  ctx[chances] = likely;
  ctx[boxes] = made;
}

void RtdetrScores::execute(Context& ctx) {
  const Tensor all = ops::contiguous(ctx, ctx[chances]), codes = ctx[x];
  const std::int64_t rows = all.size(0), n = all.size(1), queries = codes.size(1);
  const Tensor best = ops::match_rows(ctx, all.reshape({rows, n, 1}), kBest).moved;
  const Tensor first_of_row = between(ctx, counted(ctx, rows), double(n), 0).reshape({rows, 1});
  const Tensor ids =
      ops::cast(ctx, ops::add(ctx, ops::cast(ctx, best, HEDDLE_F32), first_of_row), HEDDLE_I32);
  const Tensor largest = ctx.make({rows, kBest, 1}, HEDDLE_F32),
               seen = ctx.make({rows, kBest + 1}, HEDDLE_F32),
               share = ctx.make({1, kBest, 1}, HEDDLE_F32);
  ops::embedding_into(ctx, all.reshape({rows * n, 1}), ids, largest);
  ops::fill(ctx, share, 1 / double(kBest));
  const Tensor mean =
      ops::batched_product(ctx, largest.reshape({1, rows, kBest}), share, HEDDLE_F32);
  ops::copy_into(ctx, largest.reshape({rows, kBest}), seen.slice(1, 0, kBest));
  ops::copy_into(ctx, mean.reshape({rows, 1}), seen.slice(1, kBest, kBest + 1));
  const Tensor quality = product(ctx,
                                 product(ctx, seen.reshape({1, queries, 4 * (kBest + 1)}),
                                         ctx[first], ctx[first_bias], HEDDLE_ACT_SILU),
                                 ctx[second], ctx[second_bias]);
  ctx[out] = ops::add(ctx, product(ctx, codes, ctx[score], ctx[score_bias]), quality);
}

}  // namespace heddle::detection
