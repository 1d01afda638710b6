#include "wan_sound_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "frame_pictures.h"
#include "joint_attention.h"
#include "plugins/blocks/wide.h"
#include "time_filters.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kMomentsOfFrame = 4,
                       kEarlierFrames = kFarFrames + kMiddleFrames + kNearFrames;
// Frames that one filter reads, of those in the middle and far away.
constexpr std::int64_t kMiddleTaps = 2, kFarTaps = 4;
constexpr std::int64_t kReferencePlace = 30, kReferenceGap = 9;

// The row of a tensor of one item or of all.
Tensor row_of(const Tensor& given, std::int64_t item) {
  const std::int64_t row = given.size(0) == 1 ? 0 : item;
  return given.slice(0, row, row + 1);
}

// Tokens of a latent (B, C, F, H, W): in one frame.
std::int64_t frame_tokens(const Tensor& latent) {
  return tokens_along(latent.size(3)) * tokens_along(latent.size(4));
}

// The mean of the states (B, S, K, E) by the shares (1, S, 1, 1) that SiLU makes of their numbers:
// (B, E, K) f32.
Tensor mean_state(Context& ctx, const Tensor& states, const Tensor& numbers) {
  const std::int64_t items = states.size(0), count = states.size(1), width = states.size(2),
                     moments = states.size(3);
  const Tensor weights = ctx.make({1, count, 1, 1}, HEDDLE_F32);
  ops::activate_into(ctx, numbers, HEDDLE_ACT_SILU, weights);
  Tensor sum, total;
  for (std::int64_t n = 0; n < count; ++n) {
    const Tensor weight = weights.slice(1, n, n + 1),
                 made = ops::mul(ctx, states.slice(1, n, n + 1), weight);
    sum = n == 0 ? made : ops::add(ctx, sum, made);
    total = n == 0 ? weight : ops::add(ctx, total, weight);
  }
  // Over the sum of all weights: it over its square.
  const Tensor size = ops::rsqrt(ctx, ops::mul(ctx, total, total)),
               share = ops::mul(ctx, ops::mul(ctx, total, size), size);
  const Tensor mean = ops::mul(ctx, sum, share).reshape({items, width, moments});
  return ops::contiguous(ctx, mean.permute({0, 2, 1}));
}

// Filters that read pictures of `from` (B, n, taps, H, W, C), a frame for each tap, side by side:
// (B, tokens, D).
Tensor filter_frames(Context& ctx, const Tensor& from, const Weight* taps, const Weight& bias,
                     std::int64_t side) {
  const std::int64_t pictures = from.size(0) * from.size(1);
  const auto step = std::int32_t(side);
  const heddle_conv2d_attrs attrs{{step, step}, {0, 0, 0, 0}};
  Tensor sum;
  for (std::int64_t tap = 0; tap < from.size(2); ++tap) {
    const Tensor read = ops::contiguous(ctx, from.slice(2, tap, tap + 1))
                            .reshape({pictures, from.size(3), from.size(4), from.size(5)});
    const Tensor filter = ctx[taps[tap]],
                 made = ctx.make(ops::conv2d_shape(read, filter, attrs), HEDDLE_F32);
    ops::conv2d_into(ctx, read, filter, tap == 0 ? ctx[bias] : Tensor(), attrs, sum, made);
    sum = made;
  }
  return sum.reshape({from.size(0), from.size(1) * sum.size(1) * sum.size(2), sum.size(3)});
}

// Places (frame, row, column) of frames from `first` on, of so many rows and columns that are
// spread over those of a whole frame.
struct SpreadGrid {
  std::int64_t first, frames, rows, columns;
  std::int64_t count() const { return frames * rows * columns; }
};
void put_places(Context& ctx, const SpreadGrid& grid, std::int64_t rows, std::int64_t columns,
                const Tensor& to) {
  const heddle_grid_ids_attrs attrs{{grid.frames, grid.rows, grid.columns},
                                    {double(grid.first), 0, 0}};
  if (grid.rows == rows && grid.columns == columns) return ops::grid_ids_into(ctx, attrs, to);
  const Tensor ids = ctx.make(to.shape(), HEDDLE_F32), steps = ctx.make({1, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, attrs, ids);
  const auto step = [](std::int64_t whole, std::int64_t count) {
    return count > 1 ? double(whole - 1) / double(count - 1) : 1.0;
  };
  const std::array<double, 3> told{1, step(rows, grid.rows), step(columns, grid.columns)};
  for (int axis = 0; axis < 3; ++axis)
    ops::fill(ctx, steps.slice(1, axis, axis + 1), told[std::size_t(axis)]);
  ops::mul_into(ctx, ids, steps, to);
}

}  // namespace

void WanSoundIn::execute(Context& ctx) {
  const std::int64_t width = ctx[last].size(0), frames = ctx[x].size(2), count = ctx[parts];
  if (!ctx.has(heard)) {
    ctx[out] = ctx.make({1, 0, width}, HEDDLE_F32);
    ctx[whole] = ctx.make({1, 0, width}, HEDDLE_F32);
    return;
  }
  const Tensor given = ctx[heard];
  const std::int64_t items = given.size(0),
                     moments = std::min(given.size(3), frames * kMomentsOfFrame);
  if ((moments + kMomentsOfFrame - 1) / kMomentsOfFrame != frames)
    throw Error(HEDDLE_INVALID_ARGUMENT, "a sound of " + std::to_string(given.size(3)) +
                                             " moments, four a frame, and a latent of " +
                                             std::to_string(frames) +
                                             " frames. Take both from one WanSoundImageToVideo.");
  const Tensor mean = mean_state(ctx, given.slice(3, 0, moments), ctx[shares]);
  const double e = ctx[eps];
  const TimeFilter half{second, second_bias}, quarter{third, third_bias};
  const Tensor apart = filter_in_parts(ctx, mean, count, e, {first, first_bias}, half, quarter);
  const Tensor all = ctx.make({items, frames, count + 1, width}, HEDDLE_F32);
  join_parts(ctx, apart, ctx[more], all);
  ctx[out] = all.reshape({items, frames * (count + 1), width});
  const Tensor joined =
      filter_in_parts(ctx, mean, 1, e, {whole_first, whole_first_bias}, half, quarter);
  ctx[whole] =
      blocks::wide_linear(ctx, joined.reshape({items, frames, width}), ctx[last], ctx[last_bias]);
}

void WanSoundShift::execute(Context& ctx) {
  const Tensor told = ctx[whole];
  if (told.size(1) == 0) {
    ctx[out] = ctx.make({1, 0, ctx[weight].size(0)}, HEDDLE_F32);
    return;
  }
  const Tensor activated = ops::activate(ctx, told, HEDDLE_ACT_SILU);
  ctx[out] = blocks::wide_linear(ctx, activated, ctx[weight], ctx[bias]);
}

void WanSoundAdd::execute(Context& ctx) {
  const Tensor own = ctx[hidden], seen = ctx[kv], told = ctx[mod], latent = ctx[x];
  const std::int64_t count = ctx[heads], width = own.size(2), frames = latent.size(2),
                     each = frame_tokens(latent), begin = ctx.shard(hidden).begin,
                     // This device's tokens of the video.
      mine = std::clamp<std::int64_t>(frames * each - begin, 0, own.size(1));
  const Tensor all = ctx.make(own.shape(), HEDDLE_F32);
  ctx[out] = all;
  if (seen.size(1) == 0 || mine == 0) return ops::copy_into(ctx, own, all);
  if (mine < own.size(1)) {
    const Range behind{mine, own.size(1)};
    ops::copy_into(ctx, tokens(own, behind), tokens(all, behind));
  }
  // Calls of(item, frame, this device's tokens of both).
  const auto each_frame = [&](auto&& of) {
    for (std::int64_t item = 0; item < own.size(0); ++item)
      for (std::int64_t frame = 0; frame < frames; ++frame) {
        const Range here{std::max(frame * each - begin, std::int64_t{0}),
                         std::min((frame + 1) * each - begin, mine)};
        if (here.begin < here.end) of(item, frame, here);
      }
  };
  const auto part = [](const Tensor& from, std::int64_t item, const Range& range) {
    return tokens(from.slice(0, item, item + 1), range);
  };
  const Tensor normed = ctx.make({own.size(0), mine, width});
  each_frame([&](std::int64_t item, std::int64_t frame, const Range& here) {
    const Tensor row = tokens(row_of(told, item), {frame, frame + 1});
    ops::modulated_norm_into(ctx, part(own, item, here), row.slice(2, 0, width),
                             row.slice(2, width, 2 * width), ctx[norm_eps],
                             part(normed, item, here));
  });
  const Tensor asked = ops::rms_norm(ctx, ops::linear(ctx, normed, ctx[q], ctx[q_bias]),
                                     ctx[q_norm], ctx[eps]),
               queries = blocks::split_heads(asked, count), found = ctx.make(queries.shape());
  const Tensor k = blocks::split_heads(seen.slice(2, 0, width), count),
               v = blocks::split_heads(seen.slice(2, width, 2 * width), count);
  const double scale = 1 / std::sqrt(double(width / count));
  const std::int64_t of_frame = seen.size(1) / frames;
  each_frame([&](std::int64_t item, std::int64_t frame, const Range& here) {
    const Range there{frame * of_frame, (frame + 1) * of_frame};
    ops::attention_into(ctx, part(queries, item, here), tokens(row_of(k, item), there),
                        tokens(row_of(v, item), there), {}, scale, ops::Mask::none,
                        part(found, item, here));
  });
  ops::linear_into(ctx, blocks::join_heads(found), ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE,
                   tokens(own, {0, mine}), tokens(all, {0, mine}));
}

void WanSoundTokens::execute(Context& ctx) {
  const Tensor filter = ctx[weight];
  if (!ctx.has(latent)) {
    ctx[out] = ctx.make({1, 0, filter.size(0)}, HEDDLE_F32);
    return;
  }
  const Tensor given = ctx[latent];
  const auto step = std::int32_t(kPatch);
  const Tensor made = blocks::wide_conv2d(ctx, pictures_of_frames(ctx, given), filter, ctx[bias],
                                          heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  const std::int64_t items = given.size(0), width = made.size(3);
  const Tensor rows = made.reshape({items, given.size(2) * made.size(1) * made.size(2), width});
  const Tensor told = ctx[kind];
  ctx[out] = told ? ops::add(ctx, rows, told.reshape({1, 1, width})) : rows;
}

void WanSoundMotion::execute(Context& ctx) {
  const std::int64_t width = ctx[near].size(0);
  if (!ctx.has(motion)) {
    ctx[out] = ctx.make({1, 0, width}, HEDDLE_F32);
    return;
  }
  const Tensor given = ctx[motion];
  const std::int64_t items = given.size(0), channels = given.size(1),
                     taken = std::min(given.size(2), kEarlierFrames), far_side = kFarTaps * kPatch;
  const Tensor last = given.slice(2, given.size(2) - taken, given.size(2)),
               pictures = pictures_of_frames(
                   ctx, taken < given.size(2) ? ops::contiguous(ctx, last) : last);
  const std::int64_t height = pictures.size(1), columns = pictures.size(2);
  if (height < far_side || columns < far_side)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "earlier frames of " + std::to_string(height) + "x" + std::to_string(columns) +
                    " cells are smaller than the " + std::to_string(far_side) +
                    " that the model reads at once. Make the video larger.");
  const Tensor all = ctx.make({items, kEarlierFrames, height, columns, channels});
  if (taken < kEarlierFrames) ops::fill(ctx, all.slice(1, 0, kEarlierFrames - taken), 0);
  ops::copy_into(ctx, pictures.reshape({items, taken, height, columns, channels}),
                 all.slice(1, kEarlierFrames - taken, kEarlierFrames));
  // From the nearest frames to the farthest.
  const auto filtered = [&](std::int64_t first, std::int64_t frames, std::int64_t taps,
                            const Weight* weights, const Weight& bias) {
    const Tensor read = ops::contiguous(ctx, all.slice(1, first, first + frames))
                            .reshape({items, frames / taps, taps, height, columns, channels});
    return filter_frames(ctx, read, weights, bias, taps * kPatch);
  };
  const Tensor made[] = {
      filtered(kFarFrames + kMiddleFrames, kNearFrames, 1, &near, near_bias),
      filtered(kFarFrames, kMiddleFrames, kMiddleTaps, middle, middle_bias),
      filtered(0, kFarFrames, kFarTaps, far, far_bias),
  };
  std::int64_t count = 0;
  for (const Tensor& part : made) count += part.size(1);
  const Tensor joined = ctx.make({items, count, width}, HEDDLE_F32);
  const Tensor told = ctx[kind].reshape({1, 1, width});
  std::int64_t at = 0;
  for (const Tensor& part : made) {
    ops::add_into(ctx, part, told, tokens(joined, {at, at + part.size(1)}));
    at += part.size(1);
  }
  ctx[out] = joined;
}

void WanSoundJoin::execute(Context& ctx) {
  const Tensor own = ctx[hidden], beside = ctx[followed];
  const std::int64_t items = own.size(0), count = own.size(1), width = own.size(2);
  const bool follows = beside.size(1) > 0;
  if (follows && beside.size(1) != count)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a video of " + std::to_string(beside.size(1)) + " tokens is followed by one of " +
                    std::to_string(count) + ". Take both from one WanSoundImageToVideo.");
  const Tensor more[] = {ctx[shown], ctx[before]};
  const Tensor all =
      ctx.make({items, count + more[0].size(1) + more[1].size(1), width}, HEDDLE_F32);
  const Tensor told = ctx[kind].reshape({1, 1, width});
  for (std::int64_t item = 0; item < items; ++item) {
    const Tensor to = all.slice(0, item, item + 1);
    Tensor video = own.slice(0, item, item + 1);
    if (follows) video = ops::add(ctx, video, row_of(beside, item));
    ops::add_into(ctx, video, told, tokens(to, {0, count}));
    std::int64_t at = count;
    for (const Tensor& part : more) {
      if (part.size(1) == 0) continue;
      ops::copy_into(ctx, row_of(part, item), tokens(to, {at, at + part.size(1)}));
      at += part.size(1);
    }
  }
  ctx[out] = all;
}

void WanSoundRope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t frames = latent.size(2), rows = tokens_along(latent.size(3)),
                     columns = tokens_along(latent.size(4));
  std::vector<SpreadGrid> grids{{0, frames, rows, columns}};
  if (ctx.has(reference))
    grids.push_back(
        {std::max(kReferencePlace, frames + kReferenceGap), ctx[reference].size(2), rows, columns});
  if (ctx.has(motion)) {
    grids.push_back({-kNearFrames, kNearFrames, rows, columns});
    grids.push_back({-kNearFrames - kMiddleFrames, kMiddleFrames / kMiddleTaps, rows / kMiddleTaps,
                     columns / kMiddleTaps});
    grids.push_back({-kEarlierFrames, kFarFrames / kFarTaps, rows / kFarTaps, columns / kFarTaps});
  }
  std::int64_t count = 0;
  for (const SpreadGrid& grid : grids) count += grid.count();
  const Tensor ids = ctx.make({count, 3}, HEDDLE_F32);
  std::int64_t at = 0;
  for (const SpreadGrid& grid : grids) {
    if (grid.count() > 0) put_places(ctx, grid, rows, columns, ids.slice(0, at, at + grid.count()));
    at += grid.count();
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

void WanSoundLayer::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  run_wan_layer(ctx, {}, latent.size(2) * frame_tokens(latent));
}

}  // namespace heddle::denoisers
