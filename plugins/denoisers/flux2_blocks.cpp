#include "flux2_blocks.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "embed_number.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kFlux2Axes = 4, kPlaceAxes = 3;  // the last axis counts text

Tensor flux2_guidance(Context& ctx) {
  if (ctx.has(Flux2Vector::guidance)) {
    const Tensor given = ctx[Flux2Vector::guidance];
    return given.reshape({given.count()});
  }
  const Tensor one = ctx.make({1}, HEDDLE_F32);
  ops::fill(ctx, one, ctx[Flux2Vector::default_guidance]);
  return one;
}

}  // namespace

void Flux2Vector::execute(Context& ctx) {
  const heddle_timestep_embedding_attrs waves{ctx[time_scale], ctx[max_period], 0, 1, 0};
  Tensor levels = ctx[timestep];
  const std::int64_t steps = levels.size(0), kinds = ctx.has(reference_timestep) ? 2 : 1;
  if (kinds == 2) levels = with_reference_level(ctx, levels, ctx[reference_timestep]);
  const Tensor time = embed_number(ctx, levels, waves, ctx[time_in], {}, ctx[time_out], {});
  const std::int64_t width = time.size(1);
  Tensor sum = time.reshape({steps, kinds, width});
  if (ctx[guidance_in] && !ctx.has(unguided)) {
    const Tensor guided =
        embed_number(ctx, flux2_guidance(ctx), waves, ctx[guidance_in], {}, ctx[guidance_out], {});
    if (kinds == 2 && guided.size(0) > 1)
      throw Error(
          HEDDLE_UNSUPPORTED,
          "reference pictures have a timestep of their own, and each item a guidance of its "
          "own, as NAGuidance makes it. Leave out one of the two.");
    sum = ops::add(ctx, sum, guided.reshape({1, guided.size(0), width}));
  }
  ctx[out] = ops::activate(ctx, sum, HEDDLE_ACT_SILU);
}

void Flux2Rope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t given = ctx[context].size(1) / (ctx.has(nag) ? 2 : 1);
  const std::int64_t text = std::max(given, ctx[least]), rows = latent.size(2),
                     columns = latent.size(3), own = text + rows * columns;
  const std::int64_t shown = ctx.has(reference_positions) ? ctx[reference_positions].size(0) : 0;
  const Tensor ids = ctx.make({own + shown, kFlux2Axes}, HEDDLE_F32);
  ops::fill(ctx, ids, 0);
  if (text > 0) {
    const Tensor counted = ctx.make({text, kPlaceAxes}, HEDDLE_F32);
    ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{text, 1, 1}, {0, 0, 0}}, counted);
    ops::copy_into(ctx, counted.slice(1, 0, 1),
                   ids.slice(0, 0, text).slice(1, kPlaceAxes, kFlux2Axes));
  }
  Tensor image = ctx.make({rows * columns, kPlaceAxes}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{1, rows, columns}, {0, 0, 0}}, image);
  if (ctx.has(positions)) {
    const Tensor moved = ctx[positions];
    image = ops::add(ctx, ops::mul(ctx, image, moved.slice(0, 0, 1)), moved.slice(0, 1, 2));
  }
  const auto places = [&](std::int64_t begin, std::int64_t end) {
    return ids.slice(0, begin, end).slice(1, 0, kPlaceAxes);
  };
  ops::copy_into(ctx, image, places(text, own));
  if (shown > 0) ops::copy_into(ctx, ctx[reference_positions], places(own, own + shown));
  const heddle_rope_table_attrs attrs{kFlux2Axes,
                                      0,
                                      {checked_cast<std::int32_t>(ctx[axis_0], "axis_0"),
                                       checked_cast<std::int32_t>(ctx[axis_1], "axis_1"),
                                       checked_cast<std::int32_t>(ctx[axis_2], "axis_2"),
                                       checked_cast<std::int32_t>(ctx[axis_3], "axis_3")},
                                      ctx[theta]};
  const auto [c, s] = ops::rope_table(ctx, ids, attrs);
  ctx[cos] = c;
  ctx[sin] = s;
}

}  // namespace heddle::denoisers
