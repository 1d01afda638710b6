#include "hunyuan_vae_blocks.h"

#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/frame_ops.hpp>

namespace heddle::vae {
namespace {

constexpr heddle_conv2d_attrs kHunyuanPixel{{1, 1}, {0, 0, 0, 0}};  // 1x1
constexpr std::int64_t kFramesAhead = 2;                            // of a video, the first again
constexpr double kHunyuanNormEps = 1e-6;

// Frames one after another, (N T, H, W, C), and back.
Tensor frames_in_row(const Tensor& x) {
  return x.reshape({x.size(0) * x.size(1), x.size(2), x.size(3), x.size(4)});
}
Tensor in_videos(const Tensor& frames, const Tensor& like) {
  return frames.reshape(
      {like.size(0), like.size(1), frames.size(1), frames.size(2), frames.size(3)});
}

// x (N, T, H, W, C) by groups of channels over all frames.
Tensor group_normed(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    std::int64_t groups, heddle_activation activation) {
  const heddle_group_norm_attrs attrs{kHunyuanNormEps, checked_cast<std::int32_t>(groups, "groups"),
                                      activation};
  const Tensor tall = x.reshape({x.size(0), x.size(1) * x.size(2), x.size(3), x.size(4)});
  return ops::group_norm(ctx, tall, weight, bias, attrs).reshape(x.shape());
}

// A convolution of one pixel.
Tensor by_pixel(Context& ctx, const Tensor& x, const Tensor& filter, const Tensor& bias) {
  return in_videos(ops::conv2d(ctx, frames_in_row(x), filter, bias, kHunyuanPixel), x);
}

// Videos with their edges around them: (N, 2 + T, H + 2, W + 2, C).
class WithEdges {
 public:
  WithEdges(Context& ctx, const Shape& shape)
      : ctx_(ctx),
        all_(ctx.make({shape[0], kFramesAhead + shape[1], shape[2] + 2, shape[3] + 2, shape[4]})),
        height_(shape[2]),
        width_(shape[3]) {}

  // Where the videos are to be written.
  Tensor inside() const { return pixels().slice(1, kFramesAhead, all_.size(1)); }

  // What the filter makes of them, at every `frames`th frame and `pixels`th pixel.
  Tensor filtered(const Tensor& weight, const Tensor& bias, heddle_dtype dtype,
                  const Tensor& residual = {}, std::int32_t frames = 1,
                  std::int32_t pixels = 1) const {
    complete();
    const heddle_conv3d_attrs attrs{{frames, pixels, pixels}, {0, 0, 0, 0, 0, 0}};
    const Tensor out = ctx_.make(ops::conv3d_shape(all_, weight, attrs), dtype);
    ops::conv3d_into(ctx_, all_, weight, bias, attrs, residual, out);
    return out;
  }

 private:
  Tensor pixels() const { return all_.slice(2, 1, 1 + height_).slice(3, 1, 1 + width_); }
  void complete() const {
    const Tensor own = pixels(), first = own.slice(1, kFramesAhead, kFramesAhead + 1);
    for (std::int64_t t = 0; t < kFramesAhead; ++t)
      ops::copy_into(ctx_, first, own.slice(1, t, t + 1));
    // Columns first, then whole rows, corners among them.
    for (const int axis : {3, 2}) {
      const Tensor among = axis == 3 ? all_.slice(2, 1, 1 + height_) : all_;
      const std::int64_t last = among.size(axis) - 1;
      ops::copy_into(ctx_, among.slice(axis, 1, 2), among.slice(axis, 0, 1));
      ops::copy_into(ctx_, among.slice(axis, last - 1, last), among.slice(axis, last, last + 1));
    }
  }

  Context& ctx_;
  const Tensor all_;
  const std::int64_t height_, width_;
};

Tensor causal_conv(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const WithEdges edged(ctx, x.shape());
  ops::copy_into(ctx, x, edged.inside());
  return edged.filtered(weight, bias, ctx.compute());
}

// A group norm with SiLU, then a convolution. What is normed is given back before the latter: of a
// whole video it is large.
struct NormedConv {
  const Weight &norm, &norm_bias, &conv, &conv_bias;
};
Tensor normed_conv(Context& ctx, const Tensor& x, const NormedConv& by, std::int64_t groups,
                   heddle_dtype dtype, const Tensor& residual = {}) {
  const WithEdges edged(ctx, x.shape());
  ops::copy_into(ctx,
                 group_normed(ctx, x, ctx[by.norm], ctx[by.norm_bias], groups, HEDDLE_ACT_SILU),
                 edged.inside());
  return edged.filtered(ctx[by.conv], ctx[by.conv_bias], dtype, residual);
}

}  // namespace

void HunyuanVaeLatentIn::execute(Context& ctx) {
  const Tensor given = ctx[z];
  const bool has_frames = given.rank() == 5;
  const Tensor videos =
      has_frames ? given
                 : given.reshape({given.size(0), given.size(1), 1, given.size(2), given.size(3)});
  Tensor x = ops::cast(ctx, videos.permute({0, 2, 3, 4, 1}), ctx.compute());
  if (ctx[quant]) x = by_pixel(ctx, x, ctx[quant], ctx[quant_bias]);
  ctx[out] = causal_conv(ctx, x, ctx[conv], ctx[conv_bias]);
}

void HunyuanVaeImageIn::execute(Context& ctx) {
  const Tensor pixels = ctx[image];
  if (pixels.size(3) != ctx[conv].size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the encoder takes " + std::to_string(ctx[conv].size(1)) +
                                             " channels, the pictures have " +
                                             std::to_string(pixels.size(3)));
  const Tensor x = ops::cast(ctx, pixels, ctx.compute());
  ctx[out] = causal_conv(ctx, x.reshape({1, x.size(0), x.size(1), x.size(2), x.size(3)}), ctx[conv],
                         ctx[conv_bias]);
}

void HunyuanVaeResnet::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor middle =
      normed_conv(ctx, x, {norm1, norm1_bias, conv1, conv1_bias}, ctx[groups], ctx.compute());
  const Tensor base = ctx[shortcut] ? by_pixel(ctx, x, ctx[shortcut], ctx[shortcut_bias]) : x;
  ctx[out] = normed_conv(ctx, middle, {norm2, norm2_bias, conv2, conv2_bias}, ctx[groups],
                         ctx.compute(), base);
}

void HunyuanVaeAttention::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t videos = x.size(0), frames = x.size(1), area = x.size(2) * x.size(3),
                     channels = x.size(4);
  const Tensor normed =
      group_normed(ctx, x, ctx[norm], ctx[norm_bias], ctx[groups], HEDDLE_ACT_NONE);
  const bool filters = bool(ctx[qkv_filter]);
  const Tensor all = (filters ? by_pixel(ctx, normed, ctx[qkv_filter], ctx[qkv_bias])
                              : ops::linear(ctx, normed, ctx[qkv], ctx[qkv_bias]))
                         .reshape({videos, frames * area, 1, 3 * channels});
  const Tensor seen = ctx.make({videos, frames * area, 1, channels});
  for (std::int64_t t = 0; t < frames; ++t) {
    const Tensor own = all.slice(1, t * area, (t + 1) * area),
                 known = all.slice(1, 0, (t + 1) * area);
    ops::attention_into(ctx, own.slice(3, 0, channels), known.slice(3, channels, 2 * channels),
                        known.slice(3, 2 * channels, 3 * channels), {},
                        1 / std::sqrt(double(channels)), ops::Mask::none,
                        seen.slice(1, t * area, (t + 1) * area));
  }
  const Tensor attended = seen.reshape(x.shape());
  ctx[out] = filters ? in_videos(ops::conv2d(ctx, frames_in_row(attended), ctx[proj_filter],
                                             ctx[proj_bias], kHunyuanPixel, frames_in_row(x)),
                                 x)
                     : ops::linear(ctx, attended, ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE, x);
}

void HunyuanVaeUpsample::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  Shape shape = x.shape();
  for (const std::size_t axis : {2, 3}) shape[axis] *= 2;
  if (ctx[time]) shape[1] = 2 * shape[1] - 1;
  const WithEdges edged(ctx, shape);
  const Tensor to = edged.inside();
  // Frame by frame, so that the larger pictures are there once.
  for (std::int64_t t = 0; t < x.size(1); ++t) {
    const Tensor frame = ops::contiguous(ctx, x.slice(1, t, t + 1)),
                 large = in_videos(ops::upsample_nearest(ctx, frames_in_row(frame), 2), frame);
    const std::int64_t begin = ctx[time] && t > 0 ? 2 * t - 1 : t,
                       end = ctx[time] ? 2 * t + 1 : t + 1;
    for (std::int64_t at = begin; at < end; ++at)
      ops::copy_into(ctx, large, to.slice(1, at, at + 1));
  }
  ctx[out] = edged.filtered(ctx[conv], ctx[conv_bias], ctx.compute());
}

void HunyuanVaeDownsample::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const WithEdges edged(ctx, x.shape());
  ops::copy_into(ctx, x, edged.inside());
  ctx[out] = edged.filtered(ctx[conv], ctx[conv_bias], ctx.compute(), {}, ctx[time] ? 2 : 1, 2);
}

void HunyuanVaeImageOut::execute(Context& ctx) {
  ctx[image] = frames_in_row(
      normed_conv(ctx, ctx[hidden], {norm, norm_bias, conv, conv_bias}, ctx[groups], HEDDLE_F32));
}

void HunyuanVaeLatentOut::execute(Context& ctx) {
  Tensor moments =
      normed_conv(ctx, ctx[hidden], {norm, norm_bias, conv, conv_bias}, ctx[groups], ctx.compute());
  if (ctx[quant]) moments = by_pixel(ctx, moments, ctx[quant], ctx[quant_bias]);
  const std::int64_t channels = moments.size(4) / 2;
  const auto planes = [&](std::int64_t begin) {
    return ops::cast(ctx, moments.slice(4, begin, begin + channels).permute({0, 4, 1, 2, 3}),
                     HEDDLE_F32);
  };
  ctx[mean] = planes(0);
  ctx[logvar] = ops::scale_clamp(ctx, planes(channels), heddle_scale_clamp_attrs{1, 0, -30, 20});
}

}  // namespace heddle::vae
