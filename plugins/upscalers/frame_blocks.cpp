#include "frame_blocks.h"

#include "plugins/blocks/wide.h"
#include "upscaler_blocks.h"

namespace heddle::upscalers {
namespace {

constexpr double kJoinSlope = 0.2;

std::int64_t completed(std::int64_t side, std::int64_t multiple) {
  return (side + multiple - 1) / multiple * multiple;
}

}  // namespace

void FrameIn::execute(Context& ctx) {
  const Tensor given = ops::cast(ctx, ctx[image], HEDDLE_F32);
  const Tensor whole = mirrored_to(ctx, given, completed(given.size(1), ctx[multiple]),
                                   completed(given.size(2), ctx[multiple]));
  const Tensor around = ops::add(ctx, whole, colour_mean(ctx, whole.size(3), -1));
  const Tensor seen = scaled(ctx, around, ctx[range]);
  const Tensor x = ctx[unshuffle] == 1 ? seen : unshuffled(ctx, seen, ctx[unshuffle]);
  const Tensor made =
      ops::conv2d(ctx, ops::cast(ctx, x, ctx.compute()), ctx[conv], ctx[conv_bias], kSame);
  ctx[hidden] = made;
  ctx[tokens] = ctx[norm] ? ops::layer_norm(ctx, made, ctx[norm], ctx[norm_bias], kNormEps) : made;
  ctx[pixels] = x;
}

void FrameJoin::execute(Context& ctx) {
  Tensor x = ctx[hidden];
  if (ctx[norm]) x = ops::layer_norm(ctx, x, ctx[norm], ctx[norm_bias], kNormEps);
  if (ctx[first]) {
    x = leaky_conv(ctx, x, ctx[first], ctx[first_bias], kJoinSlope);
    x = ops::conv2d(ctx, x, ctx[point], ctx[point_bias], kPoint);
    leak(ctx, x, kJoinSlope);
  }
  ctx[out] = ctx[conv] ? ops::conv2d(ctx, x, ctx[conv], ctx[conv_bias], kSame, ctx[base])
                       : ops::combine(ctx, {{1, x}, {1, ctx[base]}});
}

void FrameConv::execute(Context& ctx) {
  const Tensor made = ops::conv2d(ctx, ctx[hidden], ctx[conv], ctx[conv_bias], kSame);
  if (ctx[slope] != 1) leak(ctx, made, ctx[slope]);
  ctx[out] = ctx[scale] == 1 ? made : shuffled(ctx, made, ctx[scale]);
}

void FrameOut::execute(Context& ctx) {
  const Tensor given = ctx[image];
  const Tensor filtered = blocks::wide_conv2d(ctx, ctx[hidden], ctx[conv], ctx[conv_bias], kSame);
  const Tensor made = ctx[shuffle] == 1 ? filtered : shuffled(ctx, filtered, ctx[shuffle]);
  const std::int64_t rows = given.size(1) * ctx[scale], columns = given.size(2) * ctx[scale];
  const Tensor part = ops::contiguous(ctx, made.slice(1, 0, rows).slice(2, 0, columns));
  const double share = 1 / ctx[range];
  const Tensor x =
      ctx.has(pixels)
          ? ops::combine(
                ctx,
                {{share, part},
                 {share, ops::contiguous(ctx, ctx[pixels].slice(1, 0, rows).slice(2, 0, columns))}})
          : scaled(ctx, part, share);
  ctx[out] = ops::add(ctx, x, colour_mean(ctx, x.size(3), 1));
}

}  // namespace heddle::upscalers
