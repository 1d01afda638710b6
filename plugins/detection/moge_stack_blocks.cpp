#include "moge_stack_blocks.h"

#include <algorithm>

#include <heddle/checked.hpp>

#include "dino_blocks.h"
#include "wide_math.h"

namespace heddle::detection {
namespace {

constexpr std::int64_t kGroupChannels = 32;
constexpr double kFar = 1e6;

// Where the middles of `count` cells lie between -span and span: (count) f32.
Tensor view_line(Context& ctx, std::int64_t count, const Tensor& span) {
  const Tensor ids = ctx.make({count, 3}, HEDDLE_F32), line = ctx.make({count, 1}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{1, 1, count}, {0, 0, 0}}, ids);
  const double cells = double(count);
  ops::scale_clamp_into(ctx, ids.slice(1, 2, 3), {2 / cells, (1 - cells) / cells, -kFar, kFar},
                        line);
  ops::mul_into(ctx, line, span.reshape({1, 1}), line);
  return line;
}

struct View {
  Tensor u, v;  // (1, 1, W, 1), (1, H, 1, 1)
};
View view_of(Context& ctx, std::int64_t height, std::int64_t width, const Tensor& span) {
  return {view_line(ctx, width, span.slice(0, 0, 1)).reshape({1, 1, width, 1}),
          view_line(ctx, height, span.slice(0, 1, 2)).reshape({1, height, 1, 1})};
}

// x in the compute type with its edge once more around it; behind a ReLU if `rectified`.
Tensor edged(Context& ctx, const Tensor& x, bool rectified) {
  const std::int64_t height = x.size(1), width = x.size(2);
  const Tensor out = ctx.make({x.size(0), height + 2, width + 2, x.size(3)});
  const Tensor rows = out.slice(1, 1, height + 1), middle = rows.slice(2, 1, width + 1);
  if (rectified)
    ops::activate_into(ctx, x, HEDDLE_ACT_RELU, middle);
  else
    ops::copy_into(ctx, x, middle);
  ops::copy_into(ctx, rows.slice(2, 1, 2), rows.slice(2, 0, 1));
  ops::copy_into(ctx, rows.slice(2, width, width + 1), rows.slice(2, width + 1, width + 2));
  ops::copy_into(ctx, out.slice(1, 1, 2), out.slice(1, 0, 1));
  ops::copy_into(ctx, out.slice(1, height, height + 1), out.slice(1, height + 1, height + 2));
  return out;
}

// A convolution that keeps the size, or, of x with its edge, makes it smaller by that.
Tensor conv_of(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
               const Tensor& residual = {}) {
  const heddle_conv2d_attrs attrs{{1, 1}, {0, 0, 0, 0}};
  const Tensor out = ctx.make(ops::conv2d_shape(x, weight, attrs), HEDDLE_F32);
  ops::conv2d_into(ctx, x, weight, bias, attrs, residual, out);
  return out;
}

// Twice as many of axis 1 of x (A, N, K), linearly: each a quarter of its neighbour, the outermost
// what they are.
Tensor line_doubled(Context& ctx, const Tensor& x) {
  const std::int64_t count = x.size(1);
  const Tensor out = ctx.make({x.size(0), count, 2, x.size(2)}, HEDDLE_F32);
  const auto side = [&](std::int64_t which) {
    return [&, which](std::int64_t begin, std::int64_t end) {
      return out.slice(1, begin, end)
          .slice(2, which, which + 1)
          .reshape({x.size(0), end - begin, x.size(2)});
    };
  };
  const auto before = side(0), behind = side(1);
  ops::copy_into(ctx, x.slice(1, 0, 1), before(0, 1));
  ops::copy_into(ctx, x.slice(1, count - 1, count), behind(count - 1, count));
  if (count > 1) {
    const Tensor left = x.slice(1, 0, count - 1), right = x.slice(1, 1, count);
    ops::combine_into(ctx, {{0.25, left}, {0.75, right}}, before(1, count));
    ops::combine_into(ctx, {{0.75, left}, {0.25, right}}, behind(0, count - 1));
  }
  return out.reshape({x.size(0), 2 * count, x.size(2)});
}

Tensor linearly_doubled(Context& ctx, const Tensor& x) {
  const std::int64_t items = x.size(0), height = x.size(1), width = x.size(2), channels = x.size(3);
  const Tensor tall = line_doubled(ctx, x.reshape({items, height, width * channels}));
  return line_doubled(ctx, tall.reshape({items * 2 * height, width, channels}))
      .reshape({items, 2 * height, 2 * width, channels});
}

}  // namespace

Tensor with_view(Context& ctx, const Tensor& x, const Tensor& span) {
  const std::int64_t items = x.size(0), height = x.size(1), width = x.size(2), channels = x.size(3);
  const View view = view_of(ctx, height, width, span);
  const Tensor out = ctx.make({items, height, width, channels + 2}, HEDDLE_F32);
  ops::copy_into(ctx, x, out.slice(3, 0, channels));
  const Tensor rows = ctx.make({items, height, 1, 1}, HEDDLE_F32),
               columns = ctx.make({items, 1, width, 1}, HEDDLE_F32);
  ops::fill(ctx, rows, 0);
  ops::fill(ctx, columns, 0);
  ops::add_into(ctx, rows, view.u, out.slice(3, channels, channels + 1));
  ops::add_into(ctx, columns, view.v, out.slice(3, channels + 1, channels + 2));
  return out;
}

void MogeView::execute(Context& ctx) {
  const Tensor filter = ctx[point];
  const std::int64_t made = filter.size(0), read = filter.size(1) - 2;
  const Tensor table = filter.reshape({made, read + 2});
  const auto column = [&](std::int64_t i) {
    return ops::cast(ctx, table.slice(1, i, i + 1), HEDDLE_F32).reshape({1, 1, 1, made});
  };
  const Tensor before = ctx.has(x) ? ctx[x] : Tensor(), from = ctx.has(grid) ? ctx[grid] : before;
  const View view = view_of(ctx, from.size(1), from.size(2), ctx[span]);
  const Tensor across = ops::mul(ctx, view.u, column(read)),
               down = ops::mul(ctx, view.v, column(read + 1));
  ops::add_into(ctx, across, ctx[point_bias].reshape({1, 1, 1, made}), across);
  Tensor all = before;
  if (ctx.has(grid))
    all = product(ctx, from, ops::cast(ctx, table.slice(1, 0, read), ctx.compute()), {},
                  HEDDLE_ACT_NONE, before);
  const Tensor placed = sum(ctx, all, across);
  ops::add_into(ctx, placed, down, placed);
  ctx[out] = placed;
}

void MogePoint::execute(Context& ctx) {
  ctx[out] = conv_of(ctx, narrow(ctx, ctx[grid]), ctx[point], ctx[point_bias],
                     ctx.has(x) ? ctx[x] : Tensor());
}

void MogeResidual::execute(Context& ctx) {
  const Tensor whole = ctx[x];
  // Behind a ReLU, and a norm where there is one.
  const auto ready = [&](const Tensor& from, const Weight& norm, const Weight& bias,
                         std::int64_t groups) {
    if (!ctx[norm]) return edged(ctx, from, true);
    const auto count = checked_cast<std::int32_t>(groups, "groups");
    return edged(
        ctx, ops::group_norm(ctx, from, ctx[norm], ctx[bias], {ctx[eps], count, HEDDLE_ACT_RELU}),
        false);
  };
  const Tensor inner =
      conv_of(ctx, ready(whole, norm1, norm1_bias, 1), ctx[first], ctx[first_bias]);
  const std::int64_t groups = std::max<std::int64_t>(inner.size(3) / kGroupChannels, 1);
  ctx[out] =
      conv_of(ctx, ready(inner, norm2, norm2_bias, groups), ctx[second], ctx[second_bias], whole);
}

void MogeGrow::execute(Context& ctx) {
  Tensor grid = ctx[x];
  if (ctx.has(span)) grid = with_view(ctx, grid, ctx[span]);
  grid = ctx[up] ? doubled(ctx, grid, ctx[up], ctx[up_bias]) : linearly_doubled(ctx, grid);
  ctx[out] = conv_of(ctx, edged(ctx, grid, false), ctx[conv], ctx[conv_bias]);
}

void MogeResize::execute(Context& ctx) {
  const Tensor resized = resampled(ctx, ctx[x], {ctx[row_ids], ctx[row_shares]},
                                   {ctx[column_ids], ctx[column_shares]});
  ctx[out] = with_view(ctx, resized, ctx[span]);
}

void MogeHead::execute(Context& ctx) {
  const Tensor inner = conv_of(ctx, edged(ctx, ctx[x], false), ctx[conv], ctx[conv_bias]);
  ops::activate_into(ctx, inner, HEDDLE_ACT_RELU, inner);
  ctx[out] = conv_of(ctx, narrow(ctx, inner), ctx[point], ctx[point_bias]);
}

}  // namespace heddle::detection
