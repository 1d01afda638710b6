#include "wan_vace_blocks.h"

#include <heddle/ops.hpp>

#include "even_sides.h"
#include "patches.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {

void WanVaceIn::execute(Context& ctx) {
  const Tensor given = ctx[vace], filter = ctx[weight];
  const std::int64_t channels = filter.size(1), all = given.size(1), frames = given.size(2);
  if (all % channels != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "VACE reads " + std::to_string(channels) + " channels of each context, got " +
                    std::to_string(all) + ". Give it what WanVaceToVideo makes.");
  const std::int64_t rows = given.size(0) * (all / channels);
  // Each frame is a picture, channels last.
  const Tensor even =
      even_sides(ctx, given.reshape({rows, channels * frames, given.size(3), given.size(4)}));
  const std::int64_t height = even.size(2), width = even.size(3);
  const Tensor pictures = ctx.make({rows * frames, height, width, channels});
  ops::copy_into(ctx,
                 even.reshape({rows, channels, frames, height, width}).permute({0, 2, 3, 4, 1}),
                 pictures.reshape({rows, frames, height, width, channels}));
  const auto step = std::int32_t(kPatch);
  const Tensor made = ops::conv2d(ctx, pictures, filter, ctx[bias],
                                  heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  ctx[out] = blocks::wide_linear(
      ctx, made.reshape({rows, frames * made.size(1) * made.size(2), made.size(3)}), ctx[before],
      ctx[before_bias]);
}

void WanVaceStart::execute(Context& ctx) {
  const Tensor x = ctx[hidden], given = ctx[hint];
  const std::int64_t batch = x.size(0), rows = ctx[vace].size(0), contexts = given.size(0) / rows;
  if (batch == 1) {
    ctx[out] = ops::add(ctx, given, x);
    return;
  }
  const Tensor all = ctx.make({batch * contexts, x.size(1), x.size(2)}, HEDDLE_F32);
  for (std::int64_t item = 0; item < batch; ++item) {
    const std::int64_t from = rows == 1 ? 0 : item * contexts;
    ops::add_into(ctx, given.slice(0, from, from + contexts), x.slice(0, item, item + 1),
                  all.slice(0, item * contexts, (item + 1) * contexts));
  }
  ctx[out] = all;
}

void WanVaceAdd::execute(Context& ctx) {
  const Tensor all = ctx[hint], shares = ctx[strength];
  Tensor x = ctx[hidden];
  const std::int64_t batch = x.size(0), tokens = x.size(1), width = x.size(2),
                     contexts = all.size(0) / batch;
  const Tensor ones = ctx.make({1, 1, width}, HEDDLE_F32);
  ops::fill(ctx, ones, 1);
  for (std::int64_t k = 0; k < contexts; ++k) {
    const Tensor one = all.reshape({batch, contexts, tokens, width}).slice(1, k, k + 1),
                 whole = contexts == 1 || batch == 1 ? one : ops::contiguous(ctx, one);
    const Tensor made =
        ops::linear(ctx, whole.reshape({batch, tokens, width}), ctx[weight], ctx[bias]);
    const Tensor gate = ops::mul(ctx, ones, shares.slice(0, k, k + 1).reshape({1, 1, 1}));
    x = ops::gated_add(ctx, x, gate, made);
  }
  ctx[out] = x;
}

}  // namespace heddle::denoisers
