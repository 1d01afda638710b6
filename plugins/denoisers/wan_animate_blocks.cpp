#include "wan_animate_blocks.h"

#include <algorithm>
#include <cmath>

#include <heddle/ops.hpp>

#include "frame_pictures.h"
#include "joint_attention.h"
#include "patches.h"
#include "plugins/blocks/wide.h"
#include "time_filters.h"

namespace heddle::denoisers {
namespace {

Tensor item_of(const Tensor& given, std::int64_t item) {
  const std::int64_t row = given.size(0) == 1 ? 0 : item;
  return given.slice(0, row, row + 1);
}

// Tokens of the latent (B, C, F, H, W) in one of its frames.
std::int64_t tokens_of_frame(const Tensor& latent) {
  return tokens_along(latent.size(3)) * tokens_along(latent.size(4));
}

Tensor narrow_norm(Context& ctx, const Tensor& x, double eps) {
  const Tensor normed = ctx.make(x.shape());
  ops::layer_norm_into(ctx, x, {}, {}, eps, normed);
  return normed;
}

}  // namespace

void WanPoseAdd::execute(Context& ctx) {
  const Tensor own = ctx[hidden];
  const Tensor all = ctx.make(own.shape(), HEDDLE_F32);
  ops::copy_into(ctx, own, all);
  ctx[out] = all;
  if (!ctx.has(pose)) return;
  const Tensor latent = ctx[x], given = ctx[pose];
  const std::int64_t first = tokens_of_frame(latent), frames = latent.size(2),
                     counting = std::min(given.size(2), frames - 1);
  if (tokens_of_frame(given) != first)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "poses of " + std::to_string(given.size(3)) + "x" + std::to_string(given.size(4)) +
                    " cells, and a latent of " + std::to_string(latent.size(3)) + "x" +
                    std::to_string(latent.size(4)) + ". Make both of one size.");
  if (counting < 1) return;
  const auto step = std::int32_t(kPatch);
  const Tensor made = blocks::wide_conv2d(ctx, pictures_of_frames(ctx, given), ctx[weight],
                                          ctx[bias], {{step, step}, {0, 0, 0, 0}});
  const Tensor rows = made.reshape({given.size(0), given.size(2) * first, made.size(3)});
  for (std::int64_t item = 0; item < own.size(0); ++item) {
    const Range there{first, first * (1 + counting)};
    ops::add_into(ctx, tokens(own.slice(0, item, item + 1), there),
                  item_of(rows, item).slice(1, 0, first * counting),
                  tokens(all.slice(0, item, item + 1), there));
  }
}

void WanFaceIn::execute(Context& ctx) {
  const Tensor numbers = ctx[motion];
  const std::int64_t width = ctx[last].size(0), items = numbers.size(0);
  if (numbers.size(1) == 0) {
    ctx[out] = ctx.make({1, 0, width}, HEDDLE_F32);
    return;
  }
  const std::int64_t count = ctx[parts], frames = ctx[x].size(2);
  const double e = ctx[eps];
  const Tensor quarter = filter_in_parts(ctx, numbers, count, e, {first, first_bias},
                                         {second, second_bias}, {third, third_bias});
  const Shape shape{items, count, quarter.size(2), width};
  const Tensor made =
      blocks::wide_linear(ctx, quarter.reshape({items * count, shape[2], quarter.size(3)}),
                          ctx[last], ctx[last_bias])
          .reshape(shape);
  const std::int64_t faces = std::min(shape[2], frames - 1);
  const Tensor all = ctx.make({items, frames, count + 1, width}, HEDDLE_F32);
  ops::fill(ctx, all, 0);
  ctx[out] = all.reshape({items, frames * (count + 1), width});
  if (faces < 1) return;
  join_parts(ctx, made.slice(2, 0, faces), ctx[more], all.slice(1, 1, 1 + faces));
}

void WanFaceKeys::execute(Context& ctx) {
  const Tensor seen = ctx[tokens];
  const std::int64_t width = seen.size(2);
  if (seen.size(1) == 0) {
    ctx[out] = ctx.make({1, 0, 2 * width});
    return;
  }
  const Tensor made = ops::linear(ctx, narrow_norm(ctx, seen, ctx[eps]), ctx[kv], ctx[kv_bias]);
  const Tensor k = blocks::split_heads(made.slice(2, 0, width), ctx[heads]);
  ops::norm_rope_into(ctx, k, ctx[k_norm], {}, {}, ctx[eps], k);
  ctx[out] = made;
}

void WanFaceAdd::execute(Context& ctx) {
  const Tensor own = ctx[hidden], seen = ctx[kv];
  if (seen.size(1) == 0) {
    const Tensor same = ctx.make(own.shape(), HEDDLE_F32);
    ops::copy_into(ctx, own, same);
    ctx[out] = same;
    return;
  }
  const std::int64_t count = ctx[heads], width = own.size(2), frames = ctx[x].size(2),
                     each = tokens_of_frame(ctx[x]), faces = seen.size(1) / frames;
  const Tensor asked = ops::linear(ctx, narrow_norm(ctx, own, ctx[eps]), ctx[q], ctx[q_bias]);
  const Tensor queries = blocks::split_heads(asked, count);
  ops::norm_rope_into(ctx, queries, ctx[q_norm], {}, {}, ctx[eps], queries);
  const Tensor k = blocks::split_heads(seen.slice(2, 0, width), count),
               v = blocks::split_heads(seen.slice(2, width, 2 * width), count);
  const double scale = 1 / std::sqrt(double(width / count));
  const std::int64_t begin = ctx.shard(hidden).begin;
  const Tensor found = ctx.make(queries.shape());
  for (std::int64_t item = 0; item < own.size(0); ++item)
    for (std::int64_t frame = 0; frame < frames; ++frame) {
      // This device's tokens of the frame.
      const Range here{std::max(frame * each - begin, std::int64_t{0}),
                       std::min((frame + 1) * each - begin, own.size(1))};
      if (here.begin >= here.end) continue;
      const Range there{frame * faces, (frame + 1) * faces};
      const auto of_item = [&](const Tensor& all) {
        return denoisers::tokens(all.slice(0, item, item + 1), here);
      };
      ops::attention_into(ctx, of_item(queries), denoisers::tokens(item_of(k, item), there),
                          denoisers::tokens(item_of(v, item), there), {}, scale, ops::Mask::none,
                          of_item(found));
    }
  ctx[out] = blocks::wide_linear(ctx, blocks::join_heads(found), ctx[proj], ctx[proj_bias],
                                 HEDDLE_ACT_NONE, own);
}

}  // namespace heddle::denoisers
