#include "unet_video_blocks.h"

#include <cmath>

#include <heddle/ops.hpp>

#include "embed_number.h"
#include "plugins/blocks/frame_residual.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

// A part of the last axis.
Tensor video_part(const Tensor& x, std::int64_t index, std::int64_t width) {
  return x.slice(2, index * width, (index + 1) * width);
}

// An MLP gated by GELU, with the norm before it.
struct VideoMlp {
  const Weight &norm, &norm_bias, &up, &up_bias, &down, &down_bias;

  Tensor added(Context& ctx, const Tensor& x, double eps) const {
    const Tensor normed = ops::layer_norm(ctx, x, ctx[norm], ctx[norm_bias], eps),
                 raised = ops::linear(ctx, normed, ctx[up], ctx[up_bias]);
    const std::int64_t width = raised.size(2) / 2;
    const Tensor gated = ctx.make({raised.size(0), raised.size(1), width});
    ops::gated_activation_into(ctx, video_part(raised, 1, width), video_part(raised, 0, width),
                               HEDDLE_ACT_GELU, gated);
    return ops::linear(ctx, gated, ctx[down], ctx[down_bias], HEDDLE_ACT_NONE, x);
  }
};

// own (F, S, 3 D): a token attends to those of its place in all frames -> (F, S, D).
Tensor attend_frames(Context& ctx, const Tensor& own, std::int64_t heads) {
  const std::int64_t width = own.size(2) / 3;
  // The places of a frame as items, its frames as tokens: views alone.
  const auto turned = [&](const Tensor& x) {
    return blocks::split_heads(x, heads).permute({1, 0, 2, 3});
  };
  const Tensor seen = ctx.make({own.size(0), own.size(1), width});
  ops::attention_into(ctx, turned(video_part(own, 0, width)), turned(video_part(own, 1, width)),
                      turned(video_part(own, 2, width)), {}, 1 / std::sqrt(double(width / heads)),
                      ops::Mask::none, turned(seen));
  return seen;
}

// asked (F, S, D), kv (1, T, 2 D): all tokens attend to the same ones -> (F, S, D).
Tensor attend_told(Context& ctx, const Tensor& asked, const Tensor& kv, std::int64_t heads) {
  const std::int64_t width = asked.size(2);
  const Tensor rows = asked.reshape({1, asked.size(0) * asked.size(1), width});
  const Tensor seen = ops::attention(ctx, blocks::split_heads(rows, heads),
                                     blocks::split_heads(video_part(kv, 0, width), heads),
                                     blocks::split_heads(video_part(kv, 1, width), heads), {},
                                     1 / std::sqrt(double(width / heads)));
  return seen.reshape(asked.shape());
}

}  // namespace

void VideoResnet::execute(Context& ctx) {
  const Tensor x = ctx[hidden], told = ctx[mod];
  if (told.size(0) != 1)
    throw Error(HEDDLE_INTERNAL, "a block of one step got the modulation of " +
                                     std::to_string(told.size(0)) + " steps");
  ctx[out] = blocks::frame_residual(
      ctx, x,
      {ctx[norm1], ctx[norm1_bias], ctx[conv1], ctx[conv1_bias], ctx[norm2], ctx[norm2_bias],
       ctx[conv2], ctx[conv2_bias]},
      told, blocks::frame_gate(ctx, ctx[mix], x.size(3), true),
      {ctx[eps], checked_cast<std::int32_t>(ctx[groups], "groups"), HEDDLE_ACT_SILU});
}

void VideoPlaces::execute(Context& ctx) {
  const std::int64_t frames = ctx[x].size(0);
  const Tensor ids = ctx.make({frames, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, {{frames, 1, 1}, {0, 0, 0}}, ids);
  const Tensor numbers = ops::contiguous(ctx, ids.slice(1, 0, 1)).reshape({frames});
  const Tensor made =
      embed_number(ctx, numbers, {1, ctx[max_period], 0, 1, 0}, {in, in_bias, last, last_bias});
  ctx[out] = made.reshape({frames, 1, made.size(1)});
}

void VideoContext::execute(Context& ctx) {
  ctx[out] = ops::linear(ctx, ctx[context].slice(0, 0, 1), ctx[kv], {});
}

void VideoTransformer::execute(Context& ctx) {
  const Tensor before = ctx[tokens];
  const double epsilon = ctx[eps];
  const std::int64_t count = ctx[heads];
  const auto normed = [&](const Tensor& x, const Weight& weight, const Weight& bias) {
    return ops::layer_norm(ctx, x, ctx[weight], ctx[bias], epsilon);
  };
  Tensor x = VideoMlp{norm_in, norm_in_bias, up_in, up_in_bias, down_in, down_in_bias}.added(
      ctx, ops::add(ctx, before, ctx[places]), epsilon);
  const Tensor own = ops::linear(ctx, normed(x, norm1, norm1_bias), ctx[qkv], {});
  x = ops::linear(ctx, attend_frames(ctx, own, count), ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE,
                  x);
  const Tensor asked = ops::linear(ctx, normed(x, norm2, norm2_bias), ctx[text_q], {});
  x = ops::linear(ctx, attend_told(ctx, asked, ctx[kv], count), ctx[text_proj], ctx[text_proj_bias],
                  HEDDLE_ACT_NONE, x);
  x = VideoMlp{norm3, norm3_bias, up, up_bias, down, down_bias}.added(ctx, x, epsilon);
  const Tensor change = ops::combine(ctx, {{1, x}, {-1, before}});
  ctx[out] =
      ops::gated_add(ctx, before, blocks::frame_gate(ctx, ctx[mix], x.size(2), true), change);
}

}  // namespace heddle::denoisers
