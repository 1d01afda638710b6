#include "esrgan_blocks.h"

#include "plugins/blocks/wide.h"
#include "upscaler_blocks.h"

namespace heddle::upscalers {
namespace {

constexpr double kEsrganSlope = 0.2;  // of every activation
constexpr double kResidual = 0.2;     // the share of what a dense block, or three of them, add

}  // namespace

void EsrganIn::execute(Context& ctx) {
  const std::int64_t factor = ctx[unshuffle];
  const Tensor pixels = ops::cast(ctx, ctx[image], ctx.compute());
  ctx[out] = ops::conv2d(ctx, factor == 1 ? pixels : unshuffled(ctx, pixels, factor), ctx[conv],
                         ctx[conv_bias], kSame);
}

void EsrganDense::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor filters[] = {ctx[conv1], ctx[conv2], ctx[conv3], ctx[conv4]};
  const Tensor biases[] = {ctx[conv1_bias], ctx[conv2_bias], ctx[conv3_bias], ctx[conv4_bias]};
  const std::int64_t width = x.size(3), growth = filters[0].size(0);
  // What all have made stands side by side, so that nothing is joined by copies.
  const Tensor all = ctx.make({x.size(0), x.size(1), x.size(2), width + 4 * growth});
  ops::copy_into(ctx, x, all.slice(3, 0, width));
  std::int64_t seen = width;
  for (int i = 0; i < 4; ++i, seen += growth) {
    const Tensor made = all.slice(3, seen, seen + growth);
    ops::conv2d_into(ctx, all.slice(3, 0, seen), filters[i], biases[i], kSame, {}, made);
    leak(ctx, made, kEsrganSlope);
  }
  const Tensor last = ops::conv2d(ctx, all, ctx[conv5], ctx[conv5_bias], kSame);
  ctx[out] =
      ctx.has(base)
          ? ops::combine(ctx, {{kResidual * kResidual, last}, {kResidual, x}, {1, ctx[base]}})
          : ops::combine(ctx, {{kResidual, last}, {1, x}});
}

void EsrganTrunk::execute(Context& ctx) {
  ctx[out] = ops::conv2d(ctx, ctx[hidden], ctx[conv], ctx[conv_bias], kSame, ctx[first]);
}

void EsrganUpsample::execute(Context& ctx) {
  ctx[out] = leaky_conv(ctx, ops::upsample_nearest(ctx, ctx[hidden], 2), ctx[conv], ctx[conv_bias],
                        kEsrganSlope);
}

void EsrganOut::execute(Context& ctx) {
  const Tensor x = leaky_conv(ctx, ctx[hidden], ctx[conv], ctx[conv_bias], kEsrganSlope);
  ctx[image] = blocks::wide_conv2d(ctx, x, ctx[last], ctx[last_bias], kSame);
}

}  // namespace heddle::upscalers
