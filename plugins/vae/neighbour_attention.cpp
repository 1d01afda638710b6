#include "neighbour_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <heddle/ops.hpp>

namespace heddle::vae {
namespace {

constexpr std::int64_t kSquare = 16;  // rows and columns of queries
constexpr double kFar = -1e30, kAnywhere = std::numeric_limits<double>::infinity();

// Along an axis: queries [begin, end), and the keys [first, last) that some of them see.
struct AxisSpan {
  std::int64_t begin, end, first, last;
};

struct AxisSight {
  std::int64_t length, sees;

  AxisSight(std::int64_t cells, std::int64_t wanted)
      : length(cells), sees(std::min(cells, std::max<std::int64_t>(wanted, 1))) {}
  // The first key that a query sees.
  std::int64_t first(std::int64_t query) const {
    return std::clamp<std::int64_t>(query - sees / 2, 0, length - sees);
  }
  AxisSpan span(std::int64_t begin, std::int64_t end) const {
    return {begin, end, first(begin), first(end - 1) + sees};
  }
};

// What hides keys of a span from its queries: (queries, keys) f32, 0 where they are seen.
Tensor axis_bias(Context& ctx, const AxisSight& axis, const AxisSpan& s) {
  const auto count = [&](std::int64_t n) {
    const Tensor grid = ctx.make({n, 3}, HEDDLE_F32);
    ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{n, 1, 1}, {0, 0, 0}}, grid);
    return ops::contiguous(ctx, grid.slice(1, 0, 1));
  };
  const std::int64_t queries = s.end - s.begin, keys = s.last - s.first;
  // Minus the first key that each query sees, counted from the first of the span.
  const Tensor first =
      ops::scale_clamp(ctx, count(queries),
                       {1, double(s.begin - axis.sees / 2), 0, double(axis.length - axis.sees)});
  const Tensor back = ops::scale_clamp(ctx, first, {-1, double(s.first), -kAnywhere, kAnywhere});
  const Tensor place = ops::add(ctx, back.reshape({queries, 1}), count(keys).reshape({1, keys}));
  // Half a cell keeps what is rounded away from the edges.
  const Tensor bias = ops::scale_clamp(ctx, place, {-kFar, -kFar / 2, kFar, 0});
  ops::scale_clamp_into(ctx, place, {kFar, -kFar * (double(axis.sees) - 0.5), kFar, 0}, place);
  return ops::add(ctx, bias, place);
}

// The bias of squares of queries (1, 1, Q, K), keys of `frames` frames.
class SquareBiases {
 public:
  SquareBiases(Context& ctx, const AxisSight& rows, const AxisSight& columns, std::int64_t frames)
      : ctx_(ctx), rows_(rows), columns_(columns), frames_(frames) {}

  // Empty where all queries see all keys. Squares that lie alike have the same one.
  Tensor of(const AxisSpan& row, const AxisSpan& column) {
    const bool sees_rows = row.last - row.first == rows_.sees,
               sees_columns = column.last - column.first == columns_.sees;
    if (sees_rows && sees_columns) return {};
    const auto key = std::tuple(likeness(rows_, row), likeness(columns_, column));
    if (const auto found = made_.find(key); found != made_.end()) return found->second;
    const std::int64_t h = row.end - row.begin, w = column.end - column.begin,
                       kh = row.last - row.first, kw = column.last - column.first;
    const Tensor all = ctx_.make({h, w, frames_, kh, kw}, HEDDLE_F32);
    ops::fill(ctx_, all, 0);
    if (!sees_rows)
      ops::add_into(ctx_, all, axis_bias(ctx_, rows_, row).reshape({h, 1, 1, kh, 1}), all);
    if (!sees_columns)
      ops::add_into(ctx_, all, axis_bias(ctx_, columns_, column).reshape({1, w, 1, 1, kw}), all);
    return made_.emplace(key, all.reshape({1, 1, h * w, frames_ * kh * kw})).first->second;
  }

 private:
  using Likeness = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  // Of spans in the middle of an axis only sizes count.
  static Likeness likeness(const AxisSight& axis, const AxisSpan& s) {
    const std::int64_t queries = s.end - s.begin, keys = s.last - s.first;
    const bool is_inside = keys == queries + axis.sees - 1;
    return {queries, keys, is_inside ? 0 : s.begin, is_inside ? 0 : s.end};
  }

  Context& ctx_;
  const AxisSight &rows_, &columns_;
  const std::int64_t frames_;
  std::map<std::tuple<Likeness, Likeness>, Tensor> made_;
};

// x (T, H, W, n, d) without what is outside these rows and columns.
Tensor square_of(const Tensor& x, std::int64_t top, std::int64_t bottom, std::int64_t left,
                 std::int64_t right) {
  return x.slice(1, top, bottom).slice(2, left, right);
}

// Of a square's keys, for each frame of queries, `count` from `from` on, those of the frames that
// it sees, one behind the other: (count, K, n, d).
Tensor frames_seen(Context& ctx, const Tensor& square, const AxisSight& frames, std::int64_t from,
                   std::int64_t count) {
  const std::int64_t sees = frames.sees, rows = square.size(1), columns = square.size(2),
                     heads = square.size(3), head = square.size(4), behind = from + count;
  const Tensor out = ctx.make({count, sees, rows, columns, heads, head});
  // Where a frame sees other frames than the one before, what is nth for it is nth + 1 for that.
  const std::int64_t begin = std::clamp(sees / 2, from, behind),
                     end = std::clamp(sees / 2 + frames.length - sees + 1, begin, behind);
  for (std::int64_t i = 0; begin < end && i < sees; ++i) {
    const std::int64_t first = frames.first(begin) + i;
    ops::copy_into(ctx, square.slice(0, first, first + end - begin),
                   out.slice(0, begin - from, end - from)
                       .slice(1, i, i + 1)
                       .reshape({end - begin, rows, columns, heads, head}));
  }
  const auto put = [&](std::int64_t frame) {
    const std::int64_t first = frames.first(frame), at = frame - from;
    ops::copy_into(ctx, square.slice(0, first, first + sees),
                   out.slice(0, at, at + 1).reshape({sees, rows, columns, heads, head}));
  };
  for (std::int64_t frame = from; frame < begin; ++frame) put(frame);
  for (std::int64_t frame = end; frame < behind; ++frame) put(frame);
  return out.reshape({count, sees * rows * columns, heads, head});
}

}  // namespace

Tensor attended_by_neighbours(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                              const Neighbourhood& sees, std::int64_t begin) {
  const std::int64_t length = q.size(0), height = q.size(1), width = q.size(2), heads = q.size(3),
                     head = q.size(4);
  const AxisSight frames(k.size(0), sees[0]), rows(height, sees[1]), columns(width, sees[2]);
  SquareBiases biases(ctx, rows, columns, frames.sees);
  const Tensor out = ctx.make({length, height, width, heads, head});
  const double scale = 1 / std::sqrt(double(head));
  for (std::int64_t top = 0; top < height; top += kSquare)
    for (std::int64_t left = 0; left < width; left += kSquare) {
      const AxisSpan row = rows.span(top, std::min(top + kSquare, height)),
                     column = columns.span(left, std::min(left + kSquare, width));
      const auto seen = [&](const Tensor& x) {
        return frames_seen(ctx, square_of(x, row.first, row.last, column.first, column.last),
                           frames, begin, length);
      };
      const Tensor asked =
          ops::contiguous(ctx, square_of(q, row.begin, row.end, column.begin, column.end));
      const std::int64_t queries = asked.size(1) * asked.size(2);
      const Tensor made = ops::attention(ctx, asked.reshape({length, queries, heads, head}),
                                         seen(k), seen(v), biases.of(row, column), scale);
      ops::copy_into(ctx, made.reshape(asked.shape()),
                     square_of(out, row.begin, row.end, column.begin, column.end));
    }
  return out.reshape({length, height, width, heads * head});
}

}  // namespace heddle::vae
