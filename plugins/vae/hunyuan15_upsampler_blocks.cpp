#include "hunyuan15_upsampler_blocks.h"

#include "hunyuan15_frames.h"

namespace heddle::vae {
namespace {

// What a filter makes of x (T, H, W, C), behind SiLU where that is asked for.
Tensor up_filtered(Context& ctx, const Tensor& x, bool activates, const Tensor& filter,
                   const Tensor& bias, heddle_dtype dtype) {
  const HunyuanEdged edged(ctx, x.shape(), false, {});
  if (activates)
    ops::activate_into(ctx, hunyuan_videos(x, false), HEDDLE_ACT_SILU, edged.chunk());
  else
    ops::copy_into(ctx, hunyuan_videos(x, false), edged.chunk());
  return edged.filtered(filter, bias, dtype);
}

Tensor up_normed(Context& ctx, const Tensor& x, const Tensor& norm, const Tensor& filter,
                 const Tensor& bias, heddle_dtype dtype) {
  const HunyuanEdged edged(ctx, x.shape(), false, {});
  hunyuan_normed_to(ctx, x, norm, false, edged.chunk());
  return edged.filtered(filter, bias, dtype);
}

}  // namespace

void Hunyuan15UpIn::execute(Context& ctx) {
  const Tensor given = ctx[z];
  if (given.rank() != 5 || given.size(0) != 1 || given.size(1) != ctx[conv].size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the upscale model takes one video of " +
                                             std::to_string(ctx[conv].size(1)) +
                                             " channels. Give it a latent of HunyuanVideo 1.5.");
  const Tensor x = ops::cast(ctx, given.permute({0, 2, 3, 4, 1}), ctx.compute())
                       .reshape({given.size(2), given.size(3), given.size(4), given.size(1)});
  const Tensor made = up_filtered(ctx, x, false, ctx[conv], ctx[conv_bias], ctx.compute());
  ctx[out] =
      ctx[repeats] ? ops::add(ctx, made, hunyuan_repeated(ctx, x, made.size(3) / x.size(3))) : made;
}

void Hunyuan15UpResidual::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const heddle_dtype dtype = ctx.compute();
  Tensor made = up_filtered(ctx, x, false, ctx[conv1], ctx[conv1_bias], dtype);
  made = up_filtered(ctx, made, true, ctx[conv2], ctx[conv2_bias], dtype);
  made = up_filtered(ctx, made, true, ctx[conv3], ctx[conv3_bias], dtype);
  ctx[out] = ops::add(ctx, x, made);
}

void Hunyuan15UpResnet::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const heddle_dtype dtype = ctx.compute();
  const Tensor middle = up_normed(ctx, x, ctx[norm1], ctx[conv1], ctx[conv1_bias], dtype),
               made = up_normed(ctx, middle, ctx[norm2], ctx[conv2], ctx[conv2_bias], dtype);
  const Tensor beside =
      ctx[shortcut] ? ops::conv2d(ctx, x, ctx[shortcut], ctx[shortcut_bias], kHunyuanPoint) : x;
  ctx[out] = ops::add(ctx, made, beside);
}

void Hunyuan15UpOut::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor made = ctx[norm]
                          ? up_normed(ctx, x, ctx[norm], ctx[conv], ctx[conv_bias], HEDDLE_F32)
                          : up_filtered(ctx, x, false, ctx[conv], ctx[conv_bias], HEDDLE_F32);
  ctx[larger] = ops::contiguous(ctx, made.permute({3, 0, 1, 2}))
                    .reshape({1, made.size(3), made.size(0), made.size(1), made.size(2)});
}

}  // namespace heddle::vae
