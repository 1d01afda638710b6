#include "qwen_blocks.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "embed_number.h"
#include "patches.h"

namespace heddle::denoisers {

void QwenVector::execute(Context& ctx) {
  Tensor levels = ctx[timestep];
  const std::int64_t steps = levels.size(0);
  const std::int64_t of_each = ctx.has(reference_timestep) ? 2 : 1;
  if (of_each == 2) levels = with_reference_level(ctx, levels, ctx[reference_timestep]);
  Tensor time = embed_number(ctx, levels, {ctx[time_scale], ctx[max_period], 0, 1, 0},
                             {time_in, time_in_bias, time_out, time_out_bias});
  if (ctx[kinds]) time = ops::add(ctx, time, ctx[kinds].slice(0, 0, 1));
  ctx[out] = ops::activate(ctx, time.reshape({steps, of_each, time.size(1)}), HEDDLE_ACT_SILU);
}

void QwenRope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t text = ctx[context].size(1) / (ctx.has(nag) ? 2 : 1);
  const std::int64_t rows = tokens_along(height_of(latent)),
                     columns = tokens_along(width_of(latent)), frames = frame_count(latent);
  const std::int64_t own = text + frames * rows * columns,
                     shown = ctx.has(reference_positions) ? ctx[reference_positions].size(0) : 0;
  const Tensor ids = ctx.make({own + shown, 3}, HEDDLE_F32);
  if (text > 0) {
    const bool is_told = ctx.has(text_start);
    const std::int64_t least = latent.rank() == 5 ? frames : 0;
    const double first = is_told ? 0 : double(std::max({rows / 2, columns / 2, least}));
    const Tensor along = ctx.make({text, 3}, HEDDLE_F32);
    ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{text, 1, 1}, {first, 0, 0}}, along);
    Tensor places = along.slice(1, 0, 1);
    if (is_told) places = ops::add(ctx, places, ctx[text_start].reshape({1, 1}));
    for (int axis = 0; axis < 3; ++axis)
      ops::copy_into(ctx, places, ids.slice(0, 0, text).slice(1, axis, axis + 1));
  }
  ops::grid_ids_into(
      ctx,
      heddle_grid_ids_attrs{{frames, rows, columns},
                            {0, -double(rows - rows / 2), -double(columns - columns / 2)}},
      ids.slice(0, text, own));
  if (shown > 0) ops::copy_into(ctx, ctx[reference_positions], ids.slice(0, own, own + shown));
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

void QwenTextNorm::execute(Context& ctx) {
  const Tensor text = ctx[context];
  const Tensor normed = ctx.make(text.shape(), HEDDLE_F32);
  ops::rms_norm_into(ctx, text, ctx[weight], ctx[eps], normed);
  ctx[out] = normed;
}

}  // namespace heddle::denoisers
