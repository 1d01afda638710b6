#include "wan_pose_blocks.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "embed_number.h"
#include "even_sides.h"
#include "joint_attention.h"
#include "patches.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr float kPoseLevel = 1;

// Tokens of a latent (B, C, F, H, W) in one of its frames.
std::int64_t tokens_of_pose_frame(const Tensor& latent) {
  return tokens_along(latent.size(3)) * tokens_along(latent.size(4));
}

// What each device has of the layers is all tokens, as these look at those of one frame at a time.
void refuse_divided_poses(Context& ctx) {
  if (ctx.group().kind != HEDDLE_GROUP_NONE)
    throw Error(HEDDLE_UNSUPPORTED,
                "a video that follows poses (WanAnimate2ToVideo) does not go together with "
                "parallel modes that divide blocks. Use layers, cfg or data.");
}

}  // namespace

void WanPoseVector::execute(Context& ctx) {
  const Tensor level = ctx.make({1}, HEDDLE_F32);
  ops::fill(ctx, level, kPoseLevel);
  const Tensor made = embed_number(ctx, level, {1, 10000, 0, 1, 0},
                                   {time_in, time_in_bias, time_out, time_out_bias});
  ctx[out] = made.reshape({1, 1, made.size(1)});
}

void WanPoseIn::execute(Context& ctx) {
  const Tensor filter = ctx[weight];
  const std::int64_t batch = ctx[x].size(0), width = filter.size(0), channels = filter.size(1);
  if (!ctx.has(pose)) {
    ctx[out] = ctx.make({batch, 0, width}, HEDDLE_F32);
    return;
  }
  const Tensor given = ctx[pose];
  const std::int64_t own = given.size(1), frames = given.size(2), rows = given.size(0);
  if (2 * own > channels)
    throw Error(HEDDLE_INVALID_ARGUMENT, "poses of " + std::to_string(own) +
                                             " channels, of a model that takes " +
                                             std::to_string(channels) + ", twice those and a mask");
  const Tensor even =
      even_sides(ctx, given.reshape({rows, own * frames, given.size(3), given.size(4)}), kPatch);
  const std::int64_t height = even.size(2), columns = even.size(3);
  const Tensor pictures = ctx.make({batch * frames, height, columns, channels});
  ops::fill(ctx, pictures.slice(3, own, channels - own), 1);
  for (std::int64_t item = 0; item < batch; ++item) {
    const std::int64_t row = rows == 1 ? 0 : item;
    const Tensor from = even.slice(0, row, row + 1)
                            .reshape({own, frames, height, columns})
                            .permute({1, 2, 3, 0}),
                 to = pictures.slice(0, item * frames, (item + 1) * frames);
    ops::copy_into(ctx, from, to.slice(3, 0, own));
    ops::copy_into(ctx, from, to.slice(3, channels - own, channels));
  }
  const auto step = std::int32_t(kPatch);
  const Tensor made = blocks::wide_conv2d(ctx, pictures, filter, ctx[bias],
                                          heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  ctx[out] = made.reshape({batch, frames * made.size(1) * made.size(2), width});
}

void WanPoseRope::execute(Context& ctx) {
  const std::int64_t axes[] = {ctx[axis_0], ctx[axis_1], ctx[axis_2]};
  if (!ctx.has(pose)) {
    const std::int64_t half = (axes[0] + axes[1] + axes[2]) / 2;
    ctx[cos] = ctx.make({0, half}, HEDDLE_F32);
    ctx[sin] = ctx.make({0, half}, HEDDLE_F32);
    return;
  }
  const Tensor given = ctx[pose];
  const std::int64_t frames = given.size(2), rows = tokens_along(given.size(3)),
                     columns = tokens_along(given.size(4));
  const Tensor ids = ctx.make({frames * rows * columns, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{frames, rows, columns}, {1, 0, double(columns)}},
                     ids);
  const heddle_rope_table_attrs attrs{
      3,
      0,
      {checked_cast<std::int32_t>(axes[0], "axis_0"), checked_cast<std::int32_t>(axes[1], "axis_1"),
       checked_cast<std::int32_t>(axes[2], "axis_2"), 0},
      ctx[theta]};
  const auto [c, s] = ops::rope_table(ctx, ids, attrs);
  ctx[cos] = c;
  ctx[sin] = s;
}

void WanPoseLayer::execute(Context& ctx) {
  const Tensor tokens = ctx[B::hidden];
  const std::int64_t width = ctx[B::v].size(0);
  if (tokens.size(1) == 0) {
    ctx[B::out] = ctx.make({tokens.size(0), 0, width}, HEDDLE_F32);
    ctx[kept] = ctx.make({tokens.size(0), 0, 2 * width});
    return;
  }
  refuse_divided_poses(ctx);
  ctx[kept] = ops::contiguous(ctx, run_wan_layer(ctx, {}));
}

void WanPosedLayer::execute(Context& ctx) {
  const Tensor given = ctx[posed];
  if (given.size(1) == 0) {
    run_wan_layer(ctx, {});
    return;
  }
  refuse_divided_poses(ctx);
  run_wan_layer(ctx, {given, tokens_of_pose_frame(ctx[x])});
}

}  // namespace heddle::denoisers
