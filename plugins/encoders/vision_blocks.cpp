#include "vision_blocks.h"

#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "half_rotation.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"
#include "vision_windows.h"

namespace heddle::encoders {
namespace {

template <class Block>
VisionGrid grid_of(Context& ctx) {
  const Tensor picture = ctx[Block::picture];
  const std::int64_t merge = ctx[Block::merge], unit = ctx[Block::patch] * merge;
  const std::int64_t count = picture.rank() == 4 ? picture.size(0) : 0;
  if ((count != 1 && count != 2) || picture.size(1) < unit || picture.size(2) < unit ||
      picture.size(1) % unit != 0 || picture.size(2) % unit != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a vision tower reads a picture, or two of a video (1|2, height, width, 3), whose "
                "sides are multiples of " +
                    std::to_string(unit));
  return {picture.size(1) / unit, picture.size(2) / unit, merge, ctx[Block::side]};
}

// Queries, keys and values (1, S, H, d).
struct Seen {
  Tensor q, k, v;
};

// Each window by itself: windows of one size are the batch of an attention.
void attend_to_windows(Context& ctx, const VisionGrid& grid, const Seen& seen, const Tensor& out) {
  const double scale = 1 / std::sqrt(double(seen.q.size(3)));
  const std::int64_t area = grid.merge * grid.merge;
  for (const WindowKind& kind : window_kinds(grid)) {
    const auto of_kind = [&](const Tensor& x) {
      return x.slice(1, kind.begin * area, kind.end() * area)
          .reshape({kind.windows(), kind.height * kind.width * area, x.size(2), x.size(3)});
    };
    ops::attention_into(ctx, of_kind(seen.q), of_kind(seen.k), of_kind(seen.v), {}, scale,
                        ops::Mask::none, of_kind(out));
  }
}

Tensor attended(Context& ctx, const Tensor& normed) {
  using L = VisionLayer;
  const std::int64_t heads = ctx[L::heads], width = normed.size(2);
  const Tensor qkv = blocks::wide_linear(ctx, normed, ctx[L::qkv], ctx[L::qkv_bias]);
  const Rotation rotation{ctx[L::cos], ctx[L::sin], ctx[L::eps], false};
  const auto third = [&](int i) { return qkv.slice(2, i * width, (i + 1) * width); };
  const Seen seen{rotated(ctx, third(0), heads, {}, rotation),
                  rotated(ctx, third(1), heads, {}, rotation),
                  blocks::split_heads(ops::cast(ctx, third(2), ctx.compute()), heads)};
  const Tensor out = ctx.make(seen.v.shape());
  if (ctx[L::sees_all])
    ops::attention_into(ctx, seen.q, seen.k, seen.v, {}, 1 / std::sqrt(double(seen.q.size(3))),
                        ops::Mask::none, out);
  else
    attend_to_windows(ctx, grid_of<L>(ctx), seen, out);
  return blocks::join_heads(out);
}

}  // namespace

void VisionEmbed::execute(Context& ctx) {
  const VisionGrid grid = grid_of<VisionEmbed>(ctx);
  const auto step = checked_cast<std::int32_t>(ctx[patch], "patch");
  const heddle_conv2d_attrs attrs{{step, step}, {0, 0, 0, 0}};
  const Tensor pixels = ops::cast(ctx, ctx[picture], ctx.compute());
  const std::int64_t last = pixels.size(0) - 1;
  const Tensor one = blocks::wide_conv2d(ctx, pixels.slice(0, 0, 1), ctx[first], {}, attrs),
               two = blocks::wide_conv2d(ctx, pixels.slice(0, last, last + 1), ctx[second], {},
                                         attrs);
  const Tensor both = ops::add(ctx, one, two);
  const Tensor ordered = ctx.make({1, grid.patches(), both.size(3)}, HEDDLE_F32);
  to_windows(ctx, grid, both, ordered);
  ctx[out] = ordered;
}

void VisionRope::execute(Context& ctx) {
  const VisionGrid grid = grid_of<VisionRope>(ctx);
  const std::int64_t rows = grid.rows * grid.merge, columns = grid.columns * grid.merge;
  const Tensor places = ctx.make({rows * columns, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{1, rows, columns}, {0, 0, 0}}, places);
  const Tensor ordered = ctx.make({1, grid.patches(), 3}, HEDDLE_F32);
  to_windows(ctx, grid, places.reshape({1, rows, columns, 3}), ordered);
  const auto half = checked_cast<std::int32_t>(ctx[head] / 2, "head");
  const Tensor ids = ops::contiguous(ctx, ordered.reshape({grid.patches(), 3}).slice(1, 1, 3));
  const auto [c, s] =
      ops::rope_table(ctx, ids, heddle_rope_table_attrs{2, 0, {half, half, 0, 0}, ctx[theta]});
  ctx[cos] = c;
  ctx[sin] = s;
}

void VisionLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const double epsilon = ctx[eps];
  const Tensor seen = attended(ctx, ops::rms_norm(ctx, x, ctx[norm1], epsilon));
  const Tensor middle =
      blocks::wide_linear(ctx, seen, ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE, x);
  const Tensor again = ops::rms_norm(ctx, middle, ctx[norm2], epsilon);
  const Tensor both = blocks::wide_linear(ctx, again, ctx[up], ctx[up_bias]);
  const std::int64_t width = both.size(2) / 2;
  const Tensor raised = ctx.make({both.size(0), both.size(1), width});
  ops::gated_activation_into(ctx, both.slice(2, 0, width), both.slice(2, width, 2 * width),
                             HEDDLE_ACT_SILU, raised);
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[down], ctx[down_bias], HEDDLE_ACT_NONE, middle);
}

void VisionMerge::execute(Context& ctx) {
  const VisionGrid grid = grid_of<VisionMerge>(ctx);
  const Tensor x = ctx[hidden];
  const Tensor normed = ops::rms_norm(ctx, x, ctx[norm], ctx[eps]);
  const Tensor units = normed.reshape({1, grid.units(), grid.merge * grid.merge * x.size(2)});
  const Tensor raised = ops::linear(ctx, units, ctx[up], ctx[up_bias], HEDDLE_ACT_GELU);
  const Tensor tokens = blocks::wide_linear(ctx, raised, ctx[down], ctx[down_bias]);
  const Tensor raster = ctx.make(tokens.shape(), HEDDLE_F32);
  from_windows(ctx, grid, tokens, raster);
  ctx[out] = raster;
}

}  // namespace heddle::encoders
