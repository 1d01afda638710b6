#include "windows.h"

#include <cmath>
#include <vector>

#include "plugins/blocks/wide.h"
#include "upscaler_blocks.h"

namespace heddle::upscalers {
namespace {

constexpr double kUnseen = -100;  // the published models' mask
constexpr double kFar = 1e9;      // beyond all ids

// Rows, or columns, of the grid from `from` on, that stand in each of some windows at `at`.
struct Stretch {
  std::int64_t from, at, size, windows;
};
// Windows, one after another along a side, that are put together in the same way.
struct WindowKind {
  std::vector<Stretch> stretches;
  std::int64_t windows;
  bool crosses;  // the edge
};

std::vector<WindowKind> kinds_of(std::int64_t side, std::int64_t window, std::int64_t shift) {
  const std::int64_t count = side / window;
  if (shift == 0) return {{{{0, 0, window, count}}, count, false}};
  std::vector<WindowKind> kinds;
  if (count > 1) kinds.push_back({{{shift, 0, window, count - 1}}, count - 1, false});
  kinds.push_back(
      {{{side - window + shift, 0, window - shift, 1}, {0, window - shift, shift, 1}}, 1, true});
  return kinds;
}

// Tokens of the grid, by window: (B, rows of windows, columns of them, rows in one, columns in one,
// C).
Tensor by_window(const Tensor& grid, const Stretch& y, const Stretch& x) {
  return grid.slice(1, y.from, y.from + y.windows * y.size)
      .slice(2, x.from, x.from + x.windows * x.size)
      .reshape({grid.size(0), y.windows, y.size, x.windows, x.size, grid.size(3)})
      .permute({0, 1, 3, 2, 4, 5});
}
// The same place in windows (B, rows, columns, height, width, C).
Tensor in_windows(const Tensor& windows, const Stretch& y, const Stretch& x) {
  return windows.slice(3, y.at, y.at + y.size).slice(4, x.at, x.at + x.size);
}

// windows (B, R, S, h, w, n C) -> (B R S, h w, n, heads, d).
Tensor split(const Tensor& windows, std::int64_t n, std::int64_t heads) {
  const std::int64_t all = windows.size(0) * windows.size(1) * windows.size(2);
  return windows.reshape(
      {all, windows.size(3) * windows.size(4), n, heads, windows.size(5) / n / heads});
}
Tensor picked(const Tensor& x, std::int64_t i) {
  return x.slice(2, i, i + 1).reshape({x.size(0), x.size(1), x.size(3), x.size(4)});
}

// row * columns + column, of each token of a window: (N, 1) f32.
Tensor places(Context& ctx, const WindowSize& window, std::int64_t columns) {
  const Tensor grid = ctx.make({window.count(), 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, {{1, window.height, window.width}, {0, 0, 0}}, grid);
  return ops::combine(ctx, {{double(columns), ops::contiguous(ctx, grid.slice(1, 1, 2))},
                            {1, ops::contiguous(ctx, grid.slice(1, 2, 3))}});
}

double score_scale(const Tensor& queries) { return 1 / std::sqrt(double(queries.size(3))); }

}  // namespace

void RelativePlaces::execute(Context& ctx) {
  const WindowSize queries{ctx[query_height], ctx[query_width]},
      keys{ctx[key_height], ctx[key_width]};
  const double towards = ctx[keys_first] ? -1 : 1;
  const Tensor of_queries = scaled(ctx, places(ctx, queries, ctx[columns]), towards);
  const Tensor of_keys = scaled(ctx, places(ctx, keys, ctx[columns]), -towards);
  const Tensor distance = ops::add(ctx, of_queries, of_keys.reshape({1, keys.count()}));
  const Tensor row = ops::scale_clamp(ctx, distance, {1, double(ctx[start]), -kFar, kFar});
  // 1 where it is below 0: they are whole numbers.
  const Tensor is_below = ops::scale_clamp(ctx, row, {-1, 0, 0, 1});
  ctx[ids] =
      ops::cast(ctx, ops::combine(ctx, {{1, row}, {double(ctx[columns] * ctx[columns]), is_below}}),
                HEDDLE_I32);
}

void ShiftMasks::execute(Context& ctx) {
  const WindowSize window{ctx[height], ctx[width]};
  const std::int64_t sizes[] = {window.height, window.width};
  const std::int64_t cuts[] = {window.height - ctx[down], window.width - ctx[right]};
  const Tensor all = ctx.make({3, 1, window.count(), window.count()}, HEDDLE_F32);
  ops::fill(ctx, all, 0);
  const Tensor apart = all.reshape({3, window.height, window.width, window.height, window.width});
  for (const int axis : {0, 1})
    for (const int which : {axis, 2})
      for (const bool first : {true, false}) {
        const auto side = [&](const Tensor& x, int at, bool before) {
          return before ? x.slice(at, 0, cuts[axis]) : x.slice(at, cuts[axis], sizes[axis]);
        };
        const Tensor one = apart.slice(0, which, which + 1);
        ops::fill(ctx, side(side(one, 1 + axis, first), 3 + axis, !first), kUnseen);
      }
  ctx[masks] = all;
}

Tensor position_bias(Context& ctx, const Tensor& table, const Tensor& ids) {
  const Tensor by_pair = blocks::wide_embedding(ctx, table, ids);
  return ops::contiguous(ctx, by_pair.permute({2, 0, 1}))
      .reshape({1, table.size(1), ids.size(0), ids.size(1)});
}

void attend_in_windows(Context& ctx, const Tensor& qkv, const WindowAttention& how,
                       const Tensor& bias, const Tensor& masks, const Tensor& out) {
  const WindowSize& window = how.window;
  const std::int64_t batch = qkv.size(0), channels = qkv.size(3) / 3;
  for (const WindowKind& y : kinds_of(qkv.size(1), window.height, how.down))
    for (const WindowKind& x : kinds_of(qkv.size(2), window.width, how.right)) {
      const Shape shape{batch, y.windows, x.windows, window.height, window.width, 3 * channels};
      const Tensor windows = ctx.make(shape, qkv.dtype());
      for (const Stretch& rows : y.stretches)
        for (const Stretch& columns : x.stretches)
          ops::copy_into(ctx, by_window(qkv, rows, columns), in_windows(windows, rows, columns));
      Tensor added = bias;
      if (y.crosses || x.crosses) {
        const int which = y.crosses && x.crosses ? 2 : y.crosses ? 0 : 1;
        added = ops::add(ctx, bias, masks.slice(0, which, which + 1));
      }
      const Tensor parts = split(windows, 3, how.heads);
      const Tensor queries = picked(parts, 0);
      const Tensor made =
          ops::attention(ctx, queries, picked(parts, 1), picked(parts, 2), added,
                         score_scale(queries))
              .reshape({batch, y.windows, x.windows, window.height, window.width, channels});
      for (const Stretch& rows : y.stretches)
        for (const Stretch& columns : x.stretches)
          ops::copy_into(ctx, in_windows(made, rows, columns), by_window(out, rows, columns));
    }
}

Tensor attend_to_overlaps(Context& ctx, const Tensor& qkv, std::int64_t heads, std::int64_t side,
                          std::int64_t reach, const Tensor& bias) {
  const std::int64_t batch = qkv.size(0), height = qkv.size(1), width = qkv.size(2),
                     channels = qkv.size(3) / 3, edge = (reach - side) / 2;
  const Stretch rows{0, 0, side, height / side}, columns{0, 0, side, width / side};
  const Tensor queries = ctx.make({batch, rows.windows, columns.windows, side, side, channels});
  ops::copy_into(ctx, by_window(qkv.slice(3, 0, channels), rows, columns), queries);
  const Tensor wide = ctx.make({batch, height + 2 * edge, width + 2 * edge, 2 * channels});
  ops::fill(ctx, wide, 0);
  ops::copy_into(ctx, qkv.slice(3, channels, 3 * channels),
                 wide.slice(1, edge, edge + height).slice(2, edge, edge + width));
  heddle_tensor_info overlapping = wide.info();
  const heddle_tensor_info from = overlapping;
  overlapping.rank = 6;
  const std::int64_t shape[] = {batch, rows.windows, columns.windows, reach, reach, 2 * channels};
  const std::int64_t stride[] = {from.stride[0], side * from.stride[1], side * from.stride[2],
                                 from.stride[1], from.stride[2],        from.stride[3]};
  for (int axis = 0; axis < 6; ++axis)
    overlapping.shape[axis] = shape[axis], overlapping.stride[axis] = stride[axis];
  const Tensor seen = ops::contiguous(ctx, wide.view(overlapping, 0));
  const Tensor asked = picked(split(queries, 1, heads), 0), parts = split(seen, 2, heads);
  const Tensor made =
      ops::attention(ctx, asked, picked(parts, 0), picked(parts, 1), bias, score_scale(asked))
          .reshape(queries.shape());
  const Tensor out = ctx.make({batch, height, width, channels});
  ops::copy_into(ctx, made, by_window(out, rows, columns));
  return out;
}

}  // namespace heddle::upscalers
