#include "wan_scail_blocks.h"

#include <algorithm>
#include <array>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "frame_pictures.h"
#include "joint_attention.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

// Rows below the video at which references lie, and columns to its right at which poses do.
constexpr double kApartRows = 120, kPoseColumns = 120;

// What a filter makes of pictures (B F', H, W, C) of so many items: (B, N, D) f32.
Tensor filtered(Context& ctx, const Tensor& pictures, std::int64_t items, const Tensor& filter,
                const Tensor& bias) {
  const auto step = std::int32_t(kPatch);
  const Tensor made = blocks::wide_conv2d(ctx, pictures, filter, bias,
                                          heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  return made.reshape({items, made.count() / items / made.size(3), made.size(3)});
}

Tensor no_tokens(Context& ctx, const Tensor& filter) {
  return ctx.make({1, 0, filter.size(0)}, HEDDLE_F32);
}

Tensor scail_row(const Tensor& given, std::int64_t item) {
  const std::int64_t row = given.size(0) == 1 ? 0 : item;
  return given.slice(0, row, row + 1);
}

// Tokens, and those of the masks from `begin` on where there are any, of one item each.
struct MaskedTokens {
  Tensor tokens, masks;
  std::int64_t begin;
};
void put_masked(Context& ctx, const MaskedTokens& of, const Tensor& to) {
  if (of.tokens.size(1) == 0) return;
  if (of.masks.size(1) == 0) return ops::copy_into(ctx, of.tokens, to);
  ops::add_into(ctx, of.tokens, tokens(of.masks, {of.begin, of.begin + of.tokens.size(1)}), to);
}

void check_masks(std::int64_t masks, std::int64_t wanted, const char* of) {
  if (masks == 0 || masks == wanted) return;
  throw Error(HEDDLE_INVALID_ARGUMENT, "coloured masks of " + std::to_string(masks) +
                                           " tokens beside " + std::to_string(wanted) + " of " +
                                           of +
                                           ". Take masks, pictures and the latent from one "
                                           "WanSCAILToVideo, whose sides are multiples of 32.");
}

// Places (frame, row, column) of so many frames, rows and columns.
struct SteppedGrid {
  std::array<std::int64_t, 3> count;
  std::array<double, 3> first, step = {1, 1, 1};
  std::int64_t tokens() const { return count[0] * count[1] * count[2]; }
};
void put_stepped(Context& ctx, const SteppedGrid& grid, const Tensor& to) {
  heddle_grid_ids_attrs attrs{{grid.count[0], grid.count[1], grid.count[2]}, {0, 0, 0}};
  if (grid.step == std::array<double, 3>{1, 1, 1}) {
    std::copy(grid.first.begin(), grid.first.end(), attrs.offset);
    return ops::grid_ids_into(ctx, attrs, to);
  }
  const Tensor ids = ctx.make(to.shape(), HEDDLE_F32);
  ops::grid_ids_into(ctx, attrs, ids);
  const auto numbers = [&](const std::array<double, 3>& of) {
    const Tensor made = ctx.make({1, 3}, HEDDLE_F32);
    for (int axis = 0; axis < 3; ++axis)
      ops::fill(ctx, made.slice(1, axis, axis + 1), of[std::size_t(axis)]);
    return made;
  };
  const Tensor stepped = ops::mul(ctx, ids, numbers(grid.step));
  ops::add_into(ctx, stepped, numbers(grid.first), to);
}

}  // namespace

void WanScailIn::execute(Context& ctx) {
  const Tensor filter = ctx[weight];
  if (!ctx.has(latent)) {
    ctx[out] = no_tokens(ctx, filter);
    return;
  }
  const Tensor own = pictures_of_frames(ctx, ctx[latent]);
  const std::int64_t channels = own.size(3), all = filter.size(1);
  if (channels > all)
    throw Error(HEDDLE_INVALID_ARGUMENT, "a latent of " + std::to_string(channels) +
                                             " channels, of a model that takes " +
                                             std::to_string(all));
  const Tensor pictures = ctx.make({own.size(0), own.size(1), own.size(2), all});
  ops::copy_into(ctx, own, pictures.slice(3, 0, channels));
  if (all > channels) ops::fill(ctx, pictures.slice(3, channels, all), 1);
  ctx[out] = filtered(ctx, pictures, ctx[latent].size(0), filter, ctx[bias]);
}

void WanScailMasks::execute(Context& ctx) {
  const Tensor filter = ctx[weight];
  if (!ctx.has(masks)) {
    ctx[out] = no_tokens(ctx, filter);
    return;
  }
  const Tensor given = ctx[masks];
  const std::int64_t items = given.size(0), frames = given.size(1), channels = given.size(2);
  if (channels != filter.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "masks of " + std::to_string(channels) + " channels, of a model that takes " +
                    std::to_string(filter.size(1)) + ". Take them from WanSCAILToVideo.");
  const Tensor even =
      even_sides(ctx, given.reshape({items * frames, channels, given.size(3), given.size(4)}));
  const Tensor pictures = ctx.make({items * frames, even.size(2), even.size(3), channels});
  ops::copy_into(ctx, even.permute({0, 2, 3, 1}), pictures);
  ctx[out] = filtered(ctx, pictures, items, filter, ctx[bias]);
}

void WanScailJoin::execute(Context& ctx) {
  const Tensor own = ctx[hidden], pictures = ctx[shown], poses = ctx[posed],
               colours = ctx[shown_masks], pose_colours = ctx[posed_masks];
  const std::int64_t video = own.size(1), references = pictures.size(1), behind = poses.size(1);
  check_masks(colours.size(1), references + video, "the references and the video");
  if (behind > 0) check_masks(pose_colours.size(1), behind, "the poses");
  const Tensor all = ctx.make({own.size(0), video + references + behind, own.size(2)}, HEDDLE_F32);
  for (std::int64_t item = 0; item < own.size(0); ++item) {
    const Tensor to = all.slice(0, item, item + 1), masks = scail_row(colours, item),
                 pose_masks = scail_row(pose_colours, item);
    put_masked(ctx, {scail_row(own, item), masks, references}, tokens(to, {0, video}));
    put_masked(ctx, {scail_row(pictures, item), masks, 0}, tokens(to, {video, video + references}));
    put_masked(ctx, {scail_row(poses, item), pose_masks, 0},
               tokens(to, {video + references, video + references + behind}));
  }
  ctx[out] = all;
}

void WanScailRope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t rows = tokens_along(latent.size(3)), columns = tokens_along(latent.size(4)),
                     before = ctx.has(reference) ? ctx[reference].size(2) : 0;
  const bool is_apart = ctx.has(apart);
  const double first = double(is_apart ? std::max<std::int64_t>(before - 1, 0) : before);
  std::array<SteppedGrid, 3> grids{
      SteppedGrid{{latent.size(2), rows, columns}, {first, 0, 0}},
      SteppedGrid{{before, rows, columns}, {0, is_apart ? kApartRows : 0, 0}},
      SteppedGrid{{0, 0, 0}, {first, 0, kPoseColumns}}};
  if (ctx.has(pose)) {
    const Tensor given = ctx[pose];
    SteppedGrid& poses = grids[2];
    poses.count = {given.size(2), tokens_along(given.size(3)), tokens_along(given.size(4))};
    for (std::size_t axis = 1; axis < 3; ++axis) {
      poses.step[axis] =
          double(latent.size(std::int64_t(axis) + 2)) / double(poses.count[axis] * kPatch);
      poses.first[axis] += (poses.step[axis] - 1) / 2;
    }
  }
  std::int64_t at = 0;
  for (const SteppedGrid& grid : grids) at += grid.tokens();
  const Tensor ids = ctx.make({at, 3}, HEDDLE_F32);
  at = 0;
  for (const SteppedGrid& grid : grids) {
    if (grid.tokens() == 0) continue;
    put_stepped(ctx, grid, ids.slice(0, at, at + grid.tokens()));
    at += grid.tokens();
  }
  const heddle_rope_table_attrs attrs{3,
                                      0,
                                      {checked_cast<std::int32_t>(ctx[axis_0], "axis_0"),
                                       checked_cast<std::int32_t>(ctx[axis_1], "axis_1"),
                                       checked_cast<std::int32_t>(ctx[axis_2], "axis_2"), 0},
                                      ctx[theta]};
  const auto [c, s] = ops::rope_table(ctx, ids, attrs);
  ctx[cos] = c;
  ctx[sin] = s;
}

}  // namespace heddle::denoisers
