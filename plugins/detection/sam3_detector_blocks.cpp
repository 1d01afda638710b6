#include "sam3_detector_blocks.h"

#include <algorithm>
#include <cmath>

#include <heddle/batch_ops.hpp>

#include "wide_math.h"

namespace heddle::detection {
namespace {

constexpr std::int32_t kPixelGroups = 8;
constexpr double kMostScore = 12, kDistances = 8;

// 0 to 1 in `count` steps, as (count) f32: i / (count - shift).
Tensor steps(Context& ctx, std::int64_t count, double shift) {
  const Tensor places = ctx.make({count, 3}, HEDDLE_F32), out = ctx.make({count, 1}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{1, 1, count}, {0, 0, 0}}, places);
  ops::scale_clamp_into(ctx, places.slice(1, 2, 3), {1 / (double(count) - shift), 0, 0, 2}, out);
  return out.reshape({count});
}

// Two matrices with a ReLU between.
Tensor two_layers(Context& ctx, const Tensor& x, const Tensor& first, const Tensor& first_bias,
                  const Tensor& second, const Tensor& second_bias) {
  return product(ctx, product(ctx, x, first, first_bias, HEDDLE_ACT_RELU), second, second_bias);
}

// boxes (Q, 4) of middles and sizes: the sides low and high along an axis (0: x), each (Q, 1).
std::pair<Tensor, Tensor> sides(Context& ctx, const Tensor& boxes, int axis) {
  const Tensor middle = ops::contiguous(ctx, boxes.slice(1, axis, axis + 1)),
               size = ops::contiguous(ctx, boxes.slice(1, axis + 2, axis + 3));
  return {ops::combine(ctx, {{1, middle}, {-0.5, size}}),
          ops::combine(ctx, {{1, middle}, {0.5, size}})};
}

// Of each box and cell along an axis, how far the cell is from either side: (Q, count, 2).
Tensor distances(Context& ctx, const Tensor& boxes, int axis, std::int64_t count) {
  const std::int64_t queries = boxes.size(0);
  const Tensor cells = steps(ctx, count, 0).reshape({1, count}),
               out = ctx.make({queries, count, 2}, HEDDLE_F32);
  const auto [low, high] = sides(ctx, boxes, axis);
  for (int side = 0; side < 2; ++side) {
    const Tensor back = ops::scale_clamp(ctx, side == 0 ? low : high, {-1, 0, -2, 2});
    ops::copy_into(ctx, ops::add(ctx, back, cells).reshape({queries, count, 1}),
                   out.slice(2, side, side + 1));
  }
  return out;
}

// As the detector reads distances: their signed logarithms to the base of 8.
Tensor read_distances(Context& ctx, const Tensor& far) {
  const Tensor larger = ops::scale_clamp(ctx, far, {kDistances, 0, -15, 15});
  return ops::scale_clamp(ctx, signed_logarithm(ctx, larger), {1 / std::log(kDistances), 0, -2, 2});
}

}  // namespace

void Sam3Cells::execute(Context& ctx) {
  constexpr double kLeast = 1e-6;
  const Tensor all = ctx[grid];
  const std::int64_t height = all.size(1), width = all.size(2), channels = all.size(3);
  const Tensor out = ctx.make({height, width, channels}, HEDDLE_F32);
  const std::int64_t half = channels / 2;
  const Tensor rows = sine_features(ctx, steps(ctx, height, 1 - kLeast), half),
               columns = sine_features(ctx, steps(ctx, width, 1 - kLeast), half);
  const Tensor none = ctx.make({height, width, half}, HEDDLE_F32);
  ops::fill(ctx, none, 0);
  ops::add_into(ctx, none, rows.reshape({height, 1, half}), out.slice(2, 0, half));
  ops::add_into(ctx, none, columns.reshape({1, width, half}), out.slice(2, half, channels));
  ctx[cells] = all.reshape({1, height * width, channels});
  ctx[places] = out.reshape({1, height * width, channels});
}

void Sam3PromptToken::execute(Context& ctx) {
  const Tensor one = ctx[token];
  const Tensor made = product(ctx, ops::contiguous(ctx, one), ctx[proj], ctx[proj_bias]);
  ctx[out] =
      normalised(ctx, made, ctx[norm], ctx[norm_bias], ctx[eps]).reshape({1, 1, made.size(1)});
}

void Sam3Prompt::execute(Context& ctx) {
  const Tensor states = product(ctx, ctx[text], ctx[proj], ctx[proj_bias]);
  const std::int64_t count = states.size(1), width = states.size(2);
  const Tensor all = ctx.make({1, count + 1, width}, HEDDLE_F32);
  ops::copy_into(ctx, states, all.slice(1, 0, count));
  ops::layer_norm_into(ctx, ctx[token], ctx[norm], ctx[norm_bias], ctx[eps],
                       all.slice(1, count, count + 1));
  ctx[out] = all;
}

void Sam3Queries::execute(Context& ctx) {
  const Tensor first = ctx[presence], others = ctx[table], boxes = ctx[points];
  const std::int64_t count = others.size(0), width = others.size(1);
  const Tensor all = ctx.make({1, 1 + count, width}, HEDDLE_F32),
               places = ctx.make({1, count, 4}, HEDDLE_F32);
  ops::copy_into(ctx, first.reshape({1, 1, width}), all.slice(1, 0, 1));
  ops::copy_into(ctx, others.reshape({1, count, width}), all.slice(1, 1, 1 + count));
  ops::copy_into(ctx, boxes.reshape({1, count, 4}), places);
  ctx[queries] = all;
  ctx[anchors] = places;
}

void Sam3Anchors::execute(Context& ctx) {
  const Tensor given = ctx[anchors], cells = ctx[grid];
  const std::int64_t count = given.size(1), height = cells.size(1), width = cells.size(2),
                     channels = cells.size(3);
  const Tensor boxes = sigmoid(ctx, given).reshape({count, 4});
  const Tensor waves = sine_features(ctx, boxes.reshape({count * 4}), channels / 2)
                           .reshape({1, count, 2 * channels});
  const Tensor all = ctx.make({1, 1 + count, channels}, HEDDLE_F32);
  ops::fill(ctx, all.slice(1, 0, 1), 0);
  ops::copy_into(ctx,
                 two_layers(ctx, waves, ctx[first], ctx[first_bias], ctx[second], ctx[second_bias]),
                 all.slice(1, 1, 1 + count));
  const Tensor across =
                   two_layers(ctx, read_distances(ctx, distances(ctx, boxes, 0, width)),
                              ctx[x_first], ctx[x_first_bias], ctx[x_second], ctx[x_second_bias]),
               down =
                   two_layers(ctx, read_distances(ctx, distances(ctx, boxes, 1, height)),
                              ctx[y_first], ctx[y_first_bias], ctx[y_second], ctx[y_second_bias]);
  const std::int64_t heads = across.size(2);
  const Tensor by_column = ops::contiguous(ctx, across.permute({2, 0, 1})),
               by_row = ops::contiguous(ctx, down.permute({2, 0, 1}));
  const Tensor added = ctx.make({heads, 1 + count, height, width}, HEDDLE_F32);
  ops::fill(ctx, added.slice(1, 0, 1), 0);
  ops::add_into(ctx, by_row.reshape({heads, count, height, 1}),
                by_column.reshape({heads, count, 1, width}), added.slice(1, 1, 1 + count));
  ctx[places] = all;
  ctx[bias] = added.reshape({1, heads, 1 + count, height * width});
}

void Sam3Boxes::execute(Context& ctx) {
  const Tensor given = ctx[anchors];
  const std::int64_t count = given.size(1);
  const Tensor boxes = sigmoid(ctx, given).reshape({count, 4}),
               all = ctx.make({count, 4}, HEDDLE_F32);
  for (int axis = 0; axis < 2; ++axis) {
    const auto [low, high] = sides(ctx, boxes, axis);
    ops::copy_into(ctx, low, all.slice(1, axis, axis + 1));
    ops::copy_into(ctx, high, all.slice(1, axis + 2, axis + 3));
  }
  ctx[out] = all.reshape({1, count, 4});
}

void Sam3Scores::execute(Context& ctx) {
  const Tensor all = ctx[queries], words = ctx[prompt];
  const std::int64_t count = words.size(1), width = words.size(2);
  const Tensor raised = product(ctx, words, ctx[up], ctx[up_bias], HEDDLE_ACT_RELU);
  const Tensor made = product(ctx, raised, ctx[down], ctx[down_bias], HEDDLE_ACT_NONE, words);
  const Tensor read = normalised(ctx, made, ctx[out_norm], ctx[out_norm_bias], ctx[eps]);
  const Tensor share = ctx.make({1, 1, count}, HEDDLE_F32);
  ops::fill(ctx, share, 1 / double(count));
  const Tensor mean = ops::batched_product(ctx, share, read, HEDDLE_F32);
  const Tensor column = product(ctx, mean, ctx[text], ctx[text_bias]).reshape({1, width, 1});
  const Tensor others = ops::contiguous(ctx, all.slice(1, 1, all.size(1)));
  const Tensor rows = product(ctx, normalised(ctx, others, ctx[norm], ctx[norm_bias], ctx[eps]),
                              ctx[query], ctx[query_bias]);
  const Tensor scores = ops::batched_product(ctx, rows, column, HEDDLE_F32);
  ctx[out] = ops::scale_clamp(ctx, scores.reshape({1, all.size(1) - 1}),
                              {1 / std::sqrt(double(width)), 0, -kMostScore, kMostScore});
}

void Sam3Pixels::execute(Context& ctx) {
  const Tensor grid = ctx[below], from = ctx[above];
  const std::int64_t channels = grid.size(3);
  const Tensor half = from.reshape({1, grid.size(1) / 2, grid.size(2) / 2, channels});
  const Tensor larger = ctx.make(grid.shape(), HEDDLE_F32);
  ops::copy_into(ctx, ops::upsample_nearest(ctx, narrow(ctx, half), 2), larger);
  const Tensor both = sum(ctx, grid, larger);
  const Tensor made = convolved(ctx, both, ctx[conv], ctx[conv_bias]);
  const Tensor normed = ops::group_norm(ctx, made, ctx[norm], ctx[norm_bias],
                                        {ctx[eps], kPixelGroups, HEDDLE_ACT_RELU});
  if (ctx[last])
    ctx[out] = convolved(ctx, normed, ctx[last], ctx[last_bias]);
  else
    ctx[out] = normed;
}

}  // namespace heddle::detection
