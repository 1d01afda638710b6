#include "wan_humo_blocks.h"

#include <algorithm>
#include <cmath>

#include <heddle/ops.hpp>

#include "frame_pictures.h"
#include "joint_attention.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

// The row of a tensor of one item or of all.
Tensor item_of(const Tensor& given, std::int64_t item) {
  const std::int64_t row = given.size(0) == 1 ? 0 : item;
  return given.slice(0, row, row + 1);
}

}  // namespace

void WanHumoIn::execute(Context& ctx) {
  const std::int64_t width = ctx[norm].size(0), each = ctx[last].size(0) / width;
  if (!ctx.has(heard)) {
    ctx[out] = ctx.make({1, 0, width}, HEDDLE_F32);
    return;
  }
  const Tensor given = ctx[heard];
  const std::int64_t items = given.size(0), frames = given.size(1), numbers = ctx[first].size(1),
                     more = ctx.has(reference) ? ctx[reference].size(2) : 0;
  const Tensor all = ctx.make({items, frames + more, numbers});
  ops::copy_into(ctx, given.reshape({items, frames, numbers}), tokens(all, {0, frames}));
  if (more > 0) ops::fill(ctx, tokens(all, {frames, frames + more}), 0);
  const Tensor raised = ops::linear(ctx, all, ctx[first], ctx[first_bias], HEDDLE_ACT_RELU),
               again = ops::linear(ctx, raised, ctx[second], ctx[second_bias], HEDDLE_ACT_RELU);
  const Tensor made = blocks::wide_linear(ctx, again, ctx[last], ctx[last_bias])
                          .reshape({items, (frames + more) * each, width});
  const Tensor normed = ctx.make(made.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, made, ctx[norm], ctx[norm_bias], ctx[eps], normed);
  ctx[out] = normed;
}

void WanHumoReference::execute(Context& ctx) {
  const Tensor filter = ctx[weight];
  if (!ctx.has(latent)) {
    ctx[out] = ctx.make({1, 0, filter.size(0)}, HEDDLE_F32);
    return;
  }
  Tensor pictures = pictures_of_frames(ctx, ctx[latent]);
  const std::int64_t own = pictures.size(3), channels = filter.size(1);
  if (channels > own) {
    const Tensor all = ctx.make({pictures.size(0), pictures.size(1), pictures.size(2), channels});
    ops::fill(ctx, all.slice(3, 0, own), 0);
    ops::fill(ctx, all.slice(3, own, channels - own), 1);
    ops::copy_into(ctx, pictures, all.slice(3, channels - own, channels));
    pictures = all;
  }
  const auto step = std::int32_t(kPatch);
  const Tensor made = blocks::wide_conv2d(ctx, pictures, filter, ctx[bias],
                                          heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  const std::int64_t items = ctx[latent].size(0);
  ctx[out] = made.reshape({items, made.count() / items / made.size(3), made.size(3)});
}

void WanHumoJoin::execute(Context& ctx) {
  const Tensor own = ctx[hidden], more = ctx[shown];
  const std::int64_t count = own.size(1), added = more.size(1);
  const Tensor all = ctx.make({own.size(0), count + added, own.size(2)}, HEDDLE_F32);
  ops::copy_into(ctx, own, tokens(all, {0, count}));
  for (std::int64_t item = 0; added > 0 && item < own.size(0); ++item)
    ops::copy_into(ctx, item_of(more, item),
                   tokens(all.slice(0, item, item + 1), {count, count + added}));
  ctx[out] = all;
}

void WanHumoLayer::execute(Context& ctx) {
  const Tensor kv = ctx[sound_kv], latent = ctx[x];
  if (kv.size(1) == 0) {
    run_wan_layer(ctx, {});
    return;
  }
  const heddle_shard shard = ctx.shard(B::hidden);
  const std::int64_t count = ctx[B::heads], width = ctx[B::v].size(0), each = ctx[parts],
                     frames = kv.size(1) / each,
                     cell = tokens_along(latent.size(3)) * tokens_along(latent.size(4));
  if (frames * cell != shard.total)
    throw Error(HEDDLE_INVALID_ARGUMENT, "a sound of " + std::to_string(frames) +
                                             " frames beside " + std::to_string(shard.total) +
                                             " tokens of " + std::to_string(cell) +
                                             " in a frame. Take both from one "
                                             "WanHuMoImageToVideo.");
  const Tensor k = blocks::split_heads(kv.slice(2, 0, width), count),
               v = blocks::split_heads(kv.slice(2, width, 2 * width), count);
  run_wan_layer(ctx, {}, 0, [&](const Tensor&, const Tensor& hidden) {
    const Tensor asking = ops::layer_norm(ctx, hidden, ctx[sound_norm], ctx[sound_norm_bias],
                                          ctx[B::eps]),
                 q = blocks::split_heads(
                     ops::rms_norm(ctx, ops::linear(ctx, asking, ctx[sound_q], ctx[sound_q_bias]),
                                   ctx[sound_q_norm], ctx[B::eps]),
                     count),
                 found = ctx.make(q.shape());
    const double scale = 1 / std::sqrt(double(q.size(3)));
    for (std::int64_t item = 0; item < q.size(0); ++item)
      // Of a frame this device's tokens.
      for (std::int64_t frame = 0; frame < frames; ++frame) {
        const Range here{std::max(frame * cell - shard.begin, std::int64_t{0}),
                         std::min((frame + 1) * cell - shard.begin, q.size(1))},
            there{frame * each, (frame + 1) * each};
        if (here.begin < here.end)
          ops::attention_into(ctx, tokens(item_of(q, item), here), tokens(item_of(k, item), there),
                              tokens(item_of(v, item), there), {}, scale, ops::Mask::none,
                              tokens(item_of(found, item), here));
      }
    return blocks::wide_linear(ctx, blocks::join_heads(found), ctx[sound_proj],
                               ctx[sound_proj_bias], HEDDLE_ACT_NONE, hidden);
  });
}

}  // namespace heddle::denoisers
