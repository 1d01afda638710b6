#include "deep_vision_blocks.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "half_rotation.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"
#include "vision_windows.h"

namespace heddle::encoders {
namespace {

// PlaceBetween two places of a side, where one of `count` patches lies on a table of `side` places.
struct PlaceBetween {
  std::int64_t low, high;
  double share;  // of the higher
};
PlaceBetween table_place(std::int64_t index, std::int64_t count, std::int64_t side) {
  const double at = count > 1 ? double(index) * double(side - 1) / double(count - 1) : 0.0;
  const auto low = std::min(std::int64_t(at), side - 1);
  return {low, std::min(low + 1, side - 1), at - double(low)};
}

// `table`, of which an axis has `side` places, with `count` there instead.
Tensor interpolated(Context& ctx, const Tensor& table, int axis, std::int64_t count) {
  const std::int64_t side = table.size(axis);
  Shape shape = table.shape();
  shape[std::size_t(axis)] = count;
  const Tensor out = ctx.make(shape, HEDDLE_F32);
  const auto at = [axis](const Tensor& x, std::int64_t i) { return x.slice(axis, i, i + 1); };
  for (std::int64_t i = 0; i < count; ++i) {
    const PlaceBetween between = table_place(i, count, side);
    ops::combine_into(
        ctx,
        {{1 - between.share, at(table, between.low)}, {between.share, at(table, between.high)}},
        at(out, i));
  }
  return out;
}

Tensor attended_by_all(Context& ctx, const Tensor& normed) {
  using L = DeepVisionLayer;
  const std::int64_t heads = ctx[L::heads], width = normed.size(2);
  const Tensor qkv = blocks::wide_linear(ctx, normed, ctx[L::qkv], ctx[L::qkv_bias]);
  const Rotation rotation{ctx[L::cos], ctx[L::sin], ctx[L::eps], false};
  const auto third = [&](int i) { return qkv.slice(2, i * width, (i + 1) * width); };
  const Tensor q = rotated(ctx, third(0), heads, {}, rotation),
               k = rotated(ctx, third(1), heads, {}, rotation),
               v = blocks::split_heads(ops::cast(ctx, third(2), ctx.compute()), heads);
  return blocks::join_heads(ops::attention(ctx, q, k, v, {}, 1 / std::sqrt(double(q.size(3)))));
}

}  // namespace

void DeepVisionEmbed::execute(Context& ctx) {
  const Tensor image = ctx[picture];
  const std::int64_t area = ctx[merge] * ctx[patch], width = ctx[places].size(1);
  const std::int64_t count = image.rank() == 4 ? image.size(0) : 0;
  if ((count != 1 && count != 2) || image.size(1) < area || image.size(2) < area ||
      image.size(1) % area != 0 || image.size(2) % area != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a vision tower reads a picture, or two of a video (1|2, height, width, 3), whose "
                "sides are multiples of " +
                    std::to_string(area));
  const VisionGrid grid{image.size(1) / area, image.size(2) / area, ctx[merge], ctx[side]};
  const auto step = checked_cast<std::int32_t>(ctx[patch], "patch");
  const heddle_conv2d_attrs attrs{{step, step}, {0, 0, 0, 0}};
  const Tensor pixels = ops::cast(ctx, image, ctx.compute());
  const Tensor one = blocks::wide_conv2d(ctx, pixels.slice(0, 0, 1), ctx[first], ctx[bias], attrs),
               two = blocks::wide_conv2d(ctx, pixels.slice(0, count - 1, count), ctx[second], {},
                                         attrs);
  const auto n = std::int64_t(std::lround(std::sqrt(double(ctx[places].size(0)))));
  const Tensor table = ops::cast(ctx, ctx[places], HEDDLE_F32).reshape({n, n, width});
  const Tensor rows = interpolated(ctx, table, 0, one.size(1)),
               all = interpolated(ctx, rows, 1, one.size(2));
  const Tensor sum = ops::combine(ctx, {{1, one}, {1, two}, {1, all.reshape(one.shape())}});
  const Tensor ordered = ctx.make({1, grid.patches(), width}, HEDDLE_F32);
  to_windows(ctx, grid, sum, ordered);
  ctx[out] = ordered;
}

void DeepVisionLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const double epsilon = ctx[eps];
  const Tensor seen =
      attended_by_all(ctx, ops::layer_norm(ctx, x, ctx[norm1], ctx[norm1_bias], epsilon));
  const Tensor middle =
      blocks::wide_linear(ctx, seen, ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE, x);
  const Tensor again = ops::layer_norm(ctx, middle, ctx[norm2], ctx[norm2_bias], epsilon);
  const Tensor raised = ops::linear(ctx, again, ctx[up], ctx[up_bias], HEDDLE_ACT_GELU_TANH);
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[down], ctx[down_bias], HEDDLE_ACT_NONE, middle);
}

void DeepVisionMerge::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t area = ctx[merge] * ctx[merge];
  const Shape units{1, x.size(1) / area, area * x.size(2)};
  const Tensor given = ctx[norms_units] ? x.reshape(units) : x;
  const Tensor normed =
      ops::layer_norm(ctx, given, ctx[norm], ctx[norm_bias], ctx[eps]).reshape(units);
  const Tensor raised = ops::linear(ctx, normed, ctx[up], ctx[up_bias], HEDDLE_ACT_GELU);
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[down], ctx[down_bias]);
}

}  // namespace heddle::encoders
