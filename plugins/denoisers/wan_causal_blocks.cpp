#include "wan_causal_blocks.h"

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "patches.h"

namespace heddle::denoisers {

void WanCausalRope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t frames = latent.size(2), rows = tokens_along(latent.size(3)),
                     columns = tokens_along(latent.size(4)), cell = rows * columns,
                     before = ctx.has(kept) ? ctx[kept].size(1) : 0;
  if (before % cell != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "what a causal model keeps of earlier frames is of " + std::to_string(before) +
                    " tokens, and a frame of this latent has " + std::to_string(cell) +
                    ". All blocks of a video are of one height and width.");
  const Tensor ids = ctx.make({frames * cell, 3}, HEDDLE_F32);
  ops::grid_ids_into(
      ctx, heddle_grid_ids_attrs{{frames, rows, columns}, {double(before / cell), 0, 0}}, ids);
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

void WanCausalLayer::execute(Context& ctx) {
  if (!ctx.has(kept)) {
    const Tensor tokens = ctx[B::hidden];
    run_wan_layer(ctx, {});
    ctx[kept_out] = ctx.make({tokens.size(0), 0, 2 * ctx[B::v].size(0)});
    return;
  }
  if (ctx.group().kind != HEDDLE_GROUP_NONE)
    throw Error(HEDDLE_UNSUPPORTED,
                "keys and values of earlier frames are kept whole (SamplerARVideo), which does not "
                "go together with parallel modes that divide blocks. Use layers, cfg or data.");
  const Tensor before = ctx[kept];
  const Tensor own = run_wan_layer(ctx, before.size(1) > 0 ? WanKept{before} : WanKept{});
  ctx[kept_out] = ops::contiguous(ctx, own);
}

}  // namespace heddle::denoisers
