#include "unet_tome.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <heddle/row_ops.hpp>

#include "plugins/blocks/heads.h"
#include "unet_patches.h"

namespace heddle::denoisers {
namespace {

constexpr int kCorners = 4;

// Calls visit(part, number) for views that make up a picture (B, h, w, C): first the corner's
// (B, h / 2, w / 2, C), then those of the others, then what an odd side leaves over.
void each_part(const Tensor& picture, const TokenMerge& merge,
               const std::function<void(const Tensor&, bool is_corner)>& visit) {
  const std::int64_t items = picture.size(0), width = picture.size(3), high = merge.height / 2,
                     wide = merge.width / 2;
  const Tensor even = picture.slice(1, 0, 2 * high).slice(2, 0, 2 * wide);
  const auto at = [&](std::int64_t corner) {
    return even.reshape({items, high, 2, 2 * wide, width})
        .slice(2, corner / 2, corner / 2 + 1)
        .reshape({items, high, 2 * wide, width})
        .reshape({items, high, wide, 2, width})
        .slice(3, corner % 2, corner % 2 + 1)
        .reshape({items, high, wide, width});
  };
  visit(at(merge.corner), true);
  for (std::int64_t corner = 0; corner < kCorners; ++corner)
    if (corner != merge.corner) visit(at(corner), false);
  if (merge.width % 2 != 0) visit(picture.slice(2, merge.width - 1, merge.width), false);
  if (merge.height % 2 != 0)
    visit(picture.slice(1, merge.height - 1, merge.height).slice(2, 0, 2 * wide), false);
}

// Tokens (B, S, C) that others are merged into, and the others.
struct Sides {
  Tensor into, others;
};

Sides sides_of(Context& ctx, const Tensor& tokens, const TokenMerge& merge) {
  const std::int64_t items = tokens.size(0), width = tokens.size(2), count = merge.squares();
  const Sides sides{ctx.make({items, count, width}, tokens.dtype()),
                    ctx.make({items, tokens.size(1) - count, width}, tokens.dtype())};
  const Tensor picture =
      ops::contiguous(ctx, tokens).reshape({items, merge.height, merge.width, width});
  std::int64_t begin = 0;
  each_part(picture, merge, [&](const Tensor& part, bool is_corner) {
    const std::int64_t rows = part.size(1) * part.size(2);
    const Tensor to = is_corner ? sides.into : sides.others.slice(1, begin, begin + rows);
    if (!is_corner) begin += rows;
    for (std::int64_t item = 0; item < items; ++item)
      ops::copy_into(ctx, part.slice(0, item, item + 1),
                     to.slice(0, item, item + 1).reshape({1, part.size(1), part.size(2), width}));
  });
  return sides;
}

// The other way round: of what stands for either side.
Tensor whole_of(Context& ctx, const Sides& sides, const TokenMerge& merge) {
  const std::int64_t items = sides.into.size(0), width = sides.into.size(2);
  const Tensor picture = ctx.make({items, merge.height, merge.width, width}, sides.into.dtype());
  std::int64_t begin = 0;
  each_part(picture, merge, [&](const Tensor& part, bool is_corner) {
    const std::int64_t rows = part.size(1) * part.size(2);
    const Tensor from = is_corner ? sides.into : sides.others.slice(1, begin, begin + rows);
    if (!is_corner) begin += rows;
    for (std::int64_t item = 0; item < items; ++item)
      ops::copy_into(ctx,
                     from.slice(0, item, item + 1).reshape({1, part.size(1), part.size(2), width}),
                     part.slice(0, item, item + 1));
  });
  return picture.reshape({items, merge.height * merge.width, width});
}

// Rows of each item's matrix (B, S, C) by ids (B, n), into `out` (B, n, C).
void look_up(Context& ctx, const Tensor& rows, const Tensor& ids, const Tensor& out) {
  for (std::int64_t item = 0; item < rows.size(0); ++item)
    ops::embedding_into(ctx, rows.slice(0, item, item + 1).reshape({rows.size(1), rows.size(2)}),
                        ids.slice(0, item, item + 1), out.slice(0, item, item + 1));
}

// Cosines of the angles between tokens, times a number: (B, S, D).
Tensor likeness(Context& ctx, const Sides& sides) {
  constexpr double kEps = 1e-20;
  const Tensor others = ops::rms_norm(ctx, sides.others, {}, kEps),
               into = ops::rms_norm(ctx, sides.into, {}, kEps);
  const std::int64_t items = into.size(0), columns = into.size(1);
  const Tensor scores = ctx.make({items, others.size(1), columns}, HEDDLE_F32);
  for (std::int64_t item = 0; item < items; ++item)
    ops::linear_into(ctx, others.slice(0, item, item + 1),
                     into.slice(0, item, item + 1).reshape({columns, into.size(2)}), {},
                     HEDDLE_ACT_NONE, {}, scores.slice(0, item, item + 1));
  return scores;
}

}  // namespace

void set_merge(Block& block, double ratio, const Source& x, const std::string& path) {
  if (ratio <= 0) return;
  block.link(MergePorts::cells, x)
      .set(MergePorts::ratio, ratio)
      .set(MergePorts::corner, draw_of(path) % kCorners);
}

std::optional<TokenMerge> merge_at(Context& ctx, std::int64_t tokens) {
  if (!ctx.has(MergePorts::cells) || ctx[MergePorts::ratio] <= 0) return std::nullopt;
  const Tensor x = ctx[MergePorts::cells];
  TokenMerge merge{.height = x.size(2), .width = x.size(3), .corner = ctx[MergePorts::corner]};
  if (merge.height * merge.width != tokens || merge.height < 2 || merge.width < 2)
    return std::nullopt;
  merge.merged =
      std::min(std::int64_t(double(tokens) * ctx[MergePorts::ratio]), tokens - merge.squares());
  return merge.merged > 0 ? std::optional(merge) : std::nullopt;
}

Tensor attend_merged(Context& ctx, const Tensor& alike, const Tensor& q, const Tensor& k,
                     const Tensor& v, std::int64_t heads, const TokenMerge& merge) {
  const std::int64_t items = q.size(0), width = q.size(2), count = merge.squares();
  const ops::RowMatches matches =
      ops::match_rows(ctx, likeness(ctx, sides_of(ctx, alike, merge)), merge.merged);
  const Sides asked = sides_of(ctx, q, merge);
  const std::int64_t kept = matches.kept.size(1);
  const Tensor queries = ctx.make({items, kept + count, width});
  if (kept > 0) look_up(ctx, asked.others, matches.kept, queries.slice(1, 0, kept));
  ops::merge_rows_into(ctx, asked.into, asked.others, matches,
                       queries.slice(1, kept, kept + count));
  const auto split = [&](const Tensor& x) { return blocks::split_heads(x, heads); };
  const Tensor seen = blocks::join_heads(ops::attention(ctx, split(queries), split(k), split(v), {},
                                                        1 / std::sqrt(double(width / heads))));
  const Tensor others = ctx.make(asked.others.shape());
  look_up(ctx, seen, matches.places, others);
  return whole_of(ctx, {ops::contiguous(ctx, seen.slice(1, kept, kept + count)), others}, merge);
}

}  // namespace heddle::denoisers
