#include "wan_sources_blocks.h"

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "joint_attention.h"
#include "patches.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {

void WanSourcesIn::execute(Context& ctx) {
  const Tensor filter = ctx[weight];
  if (!ctx.has(sources)) {
    ctx[out] = ctx.make({1, 0, filter.size(0)}, HEDDLE_F32);
    return;
  }
  const Tensor given = ctx[sources];
  const std::int64_t items = given.size(0), count = given.size(1), channels = filter.size(1);
  if (given.size(2) != channels * kPatchArea)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "sources of " + std::to_string(given.size(2) / kPatchArea) +
                    " channels, of a model that takes " + std::to_string(channels) +
                    ". Encode them with the autoencoder of this model.");
  // One high picture, a token after another.
  const Tensor pictures = ctx.make({items, count * kPatch, kPatch, channels});
  ops::copy_into(ctx, given.reshape(pictures.shape()), pictures);
  const auto step = std::int32_t(kPatch);
  const Tensor made = blocks::wide_conv2d(ctx, pictures, filter, ctx[bias],
                                          heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  ctx[out] = made.reshape({items, count, made.size(3)});
}

void WanSourcesJoin::execute(Context& ctx) {
  const Tensor own = ctx[hidden], more = ctx[shown];
  const std::int64_t count = own.size(1), added = more.size(1);
  if (added == 0) {
    ctx[out] = own;
    return;
  }
  const Tensor all = ctx.make({own.size(0), count + added, own.size(2)}, HEDDLE_F32);
  ops::copy_into(ctx, own, tokens(all, {0, count}));
  for (std::int64_t item = 0; item < own.size(0); ++item) {
    const std::int64_t row = more.size(0) == 1 ? 0 : item;
    ops::copy_into(ctx, more.slice(0, row, row + 1),
                   tokens(all.slice(0, item, item + 1), {count, count + added}));
  }
  ctx[out] = all;
}

void WanSourcesRope::execute(Context& ctx) {
  if (!ctx.has(places)) return WanRope::execute(ctx);
  const Tensor latent = ctx[B::x], given = ctx[places];
  const std::int64_t frames = latent.size(2), rows = tokens_along(latent.size(3)),
                     columns = tokens_along(latent.size(4)), own = frames * rows * columns,
                     all = own + given.size(0);
  const Tensor ids = ctx.make({all, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{frames, rows, columns}, {0, 0, 0}},
                     ids.slice(0, 0, own));
  ops::copy_into(ctx, given.slice(1, 0, 3), ids.slice(0, own, all));
  const std::int32_t axes[] = {checked_cast<std::int32_t>(ctx[B::axis_0], "axis_0"),
                               checked_cast<std::int32_t>(ctx[B::axis_1], "axis_1"),
                               checked_cast<std::int32_t>(ctx[B::axis_2], "axis_2")};
  const auto [c, s] = ops::rope_table(
      ctx, ids, heddle_rope_table_attrs{3, 0, {axes[0], axes[1], axes[2], 0}, ctx[B::theta]});
  const Tensor numbers = ops::contiguous(ctx, given.slice(1, 3, 4));
  const auto [turn_c, turn_s] = ops::rope_table(
      ctx, numbers,
      heddle_rope_table_attrs{1, 0, {axes[0] + axes[1] + axes[2], 0, 0, 0}, ctx[B::theta]});
  // The cosine and the sine of the sum of both angles.
  const Tensor of_c = c.slice(0, own, all), of_s = s.slice(0, own, all);
  const Tensor cosines = ops::combine(
                   ctx, {{1.0, ops::mul(ctx, of_c, turn_c)}, {-1.0, ops::mul(ctx, of_s, turn_s)}}),
               sines = ops::combine(
                   ctx, {{1.0, ops::mul(ctx, of_s, turn_c)}, {1.0, ops::mul(ctx, of_c, turn_s)}});
  ops::copy_into(ctx, cosines, of_c);
  ops::copy_into(ctx, sines, of_s);
  ctx[B::cos] = c;
  ctx[B::sin] = s;
}

}  // namespace heddle::denoisers
