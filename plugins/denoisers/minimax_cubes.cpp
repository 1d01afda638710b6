#include "minimax_cubes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <heddle/batch_ops.hpp>
#include <heddle/ops.hpp>
#include <heddle/row_ops.hpp>

namespace heddle::denoisers {
namespace {

// What is taken off the score of a key that is not to be seen, before the scale: f16 has it twice,
// and its weight is 0 in f32.
constexpr double kUnseen = 30000;
constexpr std::int64_t kBeside = 8;      // elements that heads are longer by: libraries want eights
constexpr std::int64_t kNeighbours = 3;  // cubes that are always seen
constexpr double kUnbounded = std::numeric_limits<double>::infinity();
// Of what is fetched at a time.
constexpr std::int64_t kFetchedBytes = std::int64_t(1) << 30;

// The rows of one item and head, as a matrix.
Tensor head_rows(const Tensor& t, std::int64_t item, std::int64_t head, std::int64_t begin,
                 std::int64_t end) {
  const heddle_tensor_info& from = t.info();
  heddle_tensor_info to = tensor_info(from.dtype, {end - begin, from.shape[3]});
  to.stride[0] = from.stride[1];
  to.stride[1] = from.stride[3];
  return t.view(to, item * from.stride[0] + begin * from.stride[1] + head * from.stride[2]);
}

// Rows with room beside them, which is 0 but for the first element.
struct WideRows {
  Tensor all, own, first;
};
WideRows wide_rows(Context& ctx, std::int64_t count, std::int64_t width, double first) {
  const Tensor all = ctx.make({count, width + kBeside});
  const Tensor mark = all.slice(1, width, width + 1);
  ops::fill(ctx, all.slice(1, width, width + kBeside), 0);
  if (first != 0) ops::fill(ctx, mark, first);
  return {all, all.slice(1, 0, width), mark};
}

// What the cubes of all heads see besides those that score highest, and numbers of cubes.
struct CubeNeighbours {
  Tensor ids, unseen;  // (N, 3) f32: the one before, itself, the one behind
  Tensor minus;        // (N, 1): minus its number
  Tensor keys;         // (64 N, 1): what is taken off its places' scores
};
CubeNeighbours cube_neighbours(Context& ctx, const CubeTables& tables) {
  const std::int64_t cubes = tables.weights.size(0);
  const Tensor ids = ctx.make({cubes, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{cubes, 1, 1}, {0, 0, 0}}, ids);
  const Tensor minus = ctx.make({cubes, 1}, HEDDLE_F32);
  ops::scale_clamp_into(ctx, ids.slice(1, 0, 1), {-1, 0, -kUnbounded, kUnbounded}, minus);
  for (int i = 0; i < kNeighbours; ++i) {
    const Tensor column = ids.slice(1, i, i + 1);
    ops::scale_clamp_into(ctx, minus, {-1, double(i - 1), 0, double(cubes - 1)}, column);
  }
  const Tensor unseen = ctx.make({cubes, kNeighbours}, HEDDLE_F32);
  ops::fill(ctx, unseen, 0);
  ops::fill(ctx, unseen.slice(0, 0, 1).slice(1, 0, 1), -kUnseen);
  ops::fill(ctx, unseen.slice(0, cubes - 1, cubes).slice(1, 2, 3), -kUnseen);
  // Weights begin at 1 / 64.
  const Tensor keys =
      ops::scale_clamp(ctx, tables.weights, {kCubeTokens * kUnseen, -kUnseen, -kUnseen, 0});
  return {ids, unseen, minus, keys.reshape({cubes * kCubeTokens, 1})};
}

// The cubes that each of one head's cubes sees, and what is taken off their scores.
struct SeenCubes {
  Tensor ids, unseen;  // (N, 3 + kept) i32, f32
};
SeenCubes seen_cubes(Context& ctx, const Tensor& queries, const Tensor& keys,
                     const CubeNeighbours& near, double share) {
  const std::int64_t cubes = queries.size(0), width = queries.size(1),
                     kept = kept_cubes(cubes, share), count = kNeighbours + kept;
  const SeenCubes seen{ctx.make({cubes, count}, HEDDLE_I32), ctx.make({cubes, count}, HEDDLE_F32)};
  ops::copy_into(ctx, near.ids, seen.ids.slice(1, 0, kNeighbours));
  ops::copy_into(ctx, near.unseen, seen.unseen.slice(1, 0, kNeighbours));
  if (kept == 0) return seen;
  const Tensor across = ctx.make({1, width, cubes}, HEDDLE_F32);
  ops::copy_into(ctx, keys.permute({1, 0}), across.reshape({width, cubes}));
  const Tensor scores =
      ops::batched_product(ctx, queries.reshape({1, cubes, width}), across, HEDDLE_F32);
  const Tensor highest = ops::match_rows(ctx, scores.reshape({cubes, cubes, 1}), kept).moved;
  ops::copy_into(ctx, highest, seen.ids.slice(1, kNeighbours, count));
  // Those among the neighbours are there already.
  const Tensor apart = ops::cast(ctx, highest, HEDDLE_F32);
  ops::add_into(ctx, apart, near.minus, apart);
  ops::mul_into(ctx, apart, apart, apart);
  ops::scale_clamp_into(ctx, apart, {kUnseen, -2 * kUnseen, -kUnseen, 0},
                        seen.unseen.slice(1, kNeighbours, count));
  return seen;
}

// The means of the tiles before the video, and of its cubes: (1, M + N, H, d) f32.
struct TileMeans {
  Tensor q, k, v;
};

class CubeHeads {
 public:
  CubeHeads(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
            const CubeTables& tables, double share)
      : ctx_(ctx),
        q_(q),
        k_(k),
        v_(v),
        tables_(tables),
        near_(cube_neighbours(ctx, tables)),
        share_(share) {}

  // Of one head: what its cubes see, (64 N, 1, d) each, and their means.
  void run(std::int64_t item, std::int64_t head, const Tensor& out, const TileMeans& means) const {
    const std::int64_t cubes = tables_.weights.size(0), tiles = means.q.size(1) - cubes;
    const Tensor queries = in_cubes(q_, item, head, 1), keys = in_cubes(k_, item, head, 0),
                 values = in_cubes(v_, item, head, 0);
    ops::add_into(ctx_, keys.slice(1, width(), width() + 1), near_.keys,
                  keys.slice(1, width(), width() + 1));
    const Tensor query_means = mean(queries), key_means = mean(keys);
    const auto keep = [&](const Tensor& made, const Tensor& all) {
      ops::copy_into(ctx_, made.reshape({1, cubes, 1, width()}),
                     all.slice(1, tiles, tiles + cubes).slice(2, head, head + 1));
    };
    keep(query_means, means.q);
    keep(key_means, means.k);
    keep(mean(values), means.v);
    const SeenCubes seen = seen_cubes(ctx_, query_means, key_means, near_, share_);
    const Tensor first_keys = before_video(k_, item, head),
                 first_values = before_video(v_, item, head);
    const std::int64_t each = fetched_at_once(seen.ids.size(1));
    for (std::int64_t begin = 0; begin < cubes; begin += each) {
      const std::int64_t end = std::min(cubes, begin + each);
      const Tensor made = attend(queries, keys, values, first_keys, first_values, seen, begin, end);
      ops::copy_into(ctx_, made.slice(3, 0, width()),
                     out.slice(0, begin * kCubeTokens, end * kCubeTokens)
                         .reshape({end - begin, kCubeTokens, 1, width()}));
    }
  }

 private:
  std::int64_t width() const { return q_.size(3); }
  std::int64_t before() const { return q_.size(1) - tables_.places.size(0); }

  Tensor in_cubes(const Tensor& t, std::int64_t item, std::int64_t head, double first) const {
    const WideRows rows = wide_rows(ctx_, tables_.order.size(0), width(), first);
    ops::embedding_into(ctx_, head_rows(t, item, head, before(), t.size(1)), tables_.order,
                        rows.own);
    return rows.all;
  }
  Tensor before_video(const Tensor& t, std::int64_t item, std::int64_t head) const {
    const WideRows rows = wide_rows(ctx_, before(), width(), 0);
    ops::copy_into(ctx_, head_rows(t, item, head, 0, before()), rows.own);
    return rows.all.reshape({1, before(), rows.all.size(1)});
  }
  // (N, d) f32.
  Tensor mean(const Tensor& rows) const {
    const std::int64_t cubes = tables_.weights.size(0);
    return ops::batched_product(ctx_, tables_.weights,
                                rows.reshape({cubes, kCubeTokens, rows.size(1)}), HEDDLE_F32)
        .reshape({cubes, rows.size(1)})
        .slice(1, 0, width());
  }
  std::int64_t fetched_at_once(std::int64_t seen) const {
    const std::int64_t rows = before() + seen * kCubeTokens;
    constexpr std::int64_t kOfBoth = 2 * 4;  // keys and values, the longest type
    return std::max<std::int64_t>(1, kFetchedBytes / (rows * (width() + kBeside) * kOfBoth));
  }
  // (n, P + 64 S, d + 8): what is before the video, then the cubes of `ids` (n, S).
  Tensor fetched(const Tensor& first, const Tensor& cubes, const Tensor& ids) const {
    const std::int64_t items = ids.size(0), seen = ids.size(1), wide = cubes.size(1),
                       length = before() + seen * kCubeTokens;
    const Tensor rows = ctx_.make({items, length, wide}), nothing = ctx_.make({items, 1, 1});
    ops::fill(ctx_, nothing, 0);
    ops::add_into(ctx_, first, nothing, rows.slice(1, 0, before()));
    ops::embedding_into(ctx_, cubes.reshape({cubes.size(0) / kCubeTokens, kCubeTokens * wide}), ids,
                        rows.slice(1, before(), length).reshape({items, seen, kCubeTokens * wide}));
    return rows;
  }
  // Of cubes [begin, end): (n, 64, 1, d + 8).
  Tensor attend(const Tensor& queries, const Tensor& keys, const Tensor& values,
                const Tensor& first_keys, const Tensor& first_values, const SeenCubes& seen,
                std::int64_t begin, std::int64_t end) const {
    const std::int64_t items = end - begin, wide = queries.size(1), count = seen.ids.size(1);
    const Tensor ids = seen.ids.slice(0, begin, end), k = fetched(first_keys, keys, ids),
                 v = fetched(first_values, values, ids);
    const Tensor marks = k.slice(1, before(), k.size(1))
                             .slice(2, width(), width() + 1)
                             .reshape({items, count, kCubeTokens, 1});
    ops::add_into(ctx_, marks, seen.unseen.slice(0, begin, end).reshape({items, count, 1, 1}),
                  marks);
    return ops::attention(ctx_,
                          queries.slice(0, begin * kCubeTokens, end * kCubeTokens)
                              .reshape({items, kCubeTokens, 1, wide}),
                          k.reshape({items, k.size(1), 1, wide}),
                          v.reshape({items, v.size(1), 1, wide}), {},
                          1 / std::sqrt(double(width())));
  }

  Context& ctx_;
  const Tensor &q_, &k_, &v_;
  const CubeTables& tables_;
  const CubeNeighbours near_;
  const double share_;
};

// The means of the tiles before the video into the first of all.
void mean_tiles(Context& ctx, const Tensor& t, std::int64_t item, const CubeTables& tables,
                const Tensor& all) {
  const std::int64_t before = tables.pools.size(1), tiles = tables.pools.size(0), heads = t.size(2),
                     width = t.size(3);
  const Tensor rows =
      t.slice(0, item, item + 1).slice(1, 0, before).reshape({1, before, heads * width});
  const Tensor made =
      ops::batched_product(ctx, tables.pools.reshape({1, tiles, before}), rows, HEDDLE_F32);
  ops::copy_into(ctx, made.reshape({1, tiles, heads, width}), all.slice(1, 0, tiles));
}

// Of each token what its tile or cube sees of all others' means.
void add_coarse(Context& ctx, const TileMeans& means, const CubeTables& tables, const Tensor& out) {
  const std::int64_t heads = out.size(2), width = out.size(3), wide = heads * width,
                     before = tables.pools.size(1), tiles = tables.pools.size(0),
                     cubes = tables.weights.size(0), video = tables.places.size(0);
  const Tensor seen = ctx.make(means.q.shape(), HEDDLE_F32);
  ops::attention_into(ctx, means.q, means.k, means.v, {}, 1 / std::sqrt(double(width)),
                      ops::Mask::none, seen);
  // A tile's row of pools, turned round and made 1, tells its tokens.
  const Tensor members = ctx.make({1, before, tiles}, HEDDLE_F32);
  ops::copy_into(ctx, tables.pools.permute({1, 0}), members.reshape({before, tiles}));
  ops::scale_clamp_into(ctx, members, {double(kCubeTokens), 0, 0, 1}, members);
  const Tensor first = ops::batched_product(
      ctx, members, seen.slice(1, 0, tiles).reshape({1, tiles, wide}), out.dtype());
  ops::copy_into(ctx, first.reshape({1, before, heads, width}), out.slice(1, 0, before));
  const Tensor number = ops::cast(ctx, tables.places, HEDDLE_F32);
  ops::scale_clamp_into(ctx, number, {1 / double(kCubeTokens), 0, 0, kUnbounded}, number);
  const Tensor cube = ops::cast(ctx, number, HEDDLE_I32);
  ops::embedding_into(ctx, seen.slice(1, tiles, tiles + cubes).reshape({cubes, wide}), cube,
                      out.slice(1, before, before + video).reshape({video, wide}));
}

}  // namespace

CubeAttention cube_attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                             const CubeTables& tables, double share, bool coarse) {
  const std::int64_t batch = q.size(0), length = q.size(1), heads = q.size(2), width = q.size(3),
                     video = tables.places.size(0), before = length - video,
                     cubes = tables.weights.size(0), tiles = tables.pools.size(0);
  CubeAttention made{ctx.make({batch, length, heads, width}), {}};
  if (coarse) made.coarse = ctx.make({batch, length, heads, width});
  ops::attention_into(ctx, q.slice(1, 0, before), k, v, {}, 1 / std::sqrt(double(width)),
                      ops::Mask::none, made.fine.slice(1, 0, before));
  const CubeHeads of_heads(ctx, q, k, v, tables, share);
  for (std::int64_t item = 0; item < batch; ++item) {
    const Shape shape{1, tiles + cubes, heads, width};
    const TileMeans means{ctx.make(shape, HEDDLE_F32), ctx.make(shape, HEDDLE_F32),
                          ctx.make(shape, HEDDLE_F32)};
    const Tensor rows = ctx.make({cubes * kCubeTokens, heads, width});
    for (std::int64_t head = 0; head < heads; ++head)
      of_heads.run(item, head, rows.slice(1, head, head + 1), means);
    const auto of_item = [&](const Tensor& all) { return all.slice(0, item, item + 1); };
    ops::embedding_into(
        ctx, rows.reshape({cubes * kCubeTokens, heads * width}), tables.places,
        of_item(made.fine).slice(1, before, length).reshape({video, heads * width}));
    if (!coarse) continue;
    for (const auto& [from, to] : {std::pair{&q, &means.q}, {&k, &means.k}, {&v, &means.v}})
      mean_tiles(ctx, *from, item, tables, *to);
    add_coarse(ctx, means, tables, of_item(made.coarse));
  }
  return made;
}

}  // namespace heddle::denoisers
