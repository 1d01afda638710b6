// plugins/blocks/frame_residual.h - the part of Stable Video Diffusion's residual blocks that sees
// several frames: two filters of three frames each, whose result is added to what was there by a
// learned share. Source: Blattmann et al. 2023 (Stable Video Diffusion). Used in blocks, as they
// are traced; any thread.
#pragma once

#include <heddle/checked.hpp>
#include <heddle/frame_ops.hpp>

namespace heddle::blocks {

// A learned share as a gate (1, 1, width) f32: sigmoid(mix), or of `rest` what is left of 1. mix:
// (1). By tanh, as there is no op of the sigmoid.
inline Tensor frame_gate(Context& ctx, const Tensor& mix, std::int64_t width, bool rest) {
  constexpr double kEnds = 200;  // where tanh has long been 1
  const Tensor half = ctx.make({1, 1, 1}, HEDDLE_F32), all = ctx.make({1, 1, width}, HEDDLE_F32);
  ops::copy_into(ctx, mix.reshape({1, 1, 1}), half);
  ops::fill(ctx, all, 1);
  const Tensor bent =
      ops::activate(ctx, ops::scale_clamp(ctx, half, {0.5, 0, -kEnds, kEnds}), HEDDLE_ACT_TANH);
  return ops::mul(ctx, all, ops::scale_clamp(ctx, bent, {rest ? -0.5 : 0.5, 0.5, 0, 1}));
}

// Filters (O, C, 3, 1, 1) with their biases, and norms before them.
struct FrameFilters {
  Tensor norm1, norm1_bias, conv1, conv1_bias, norm2, norm2_bias, conv2, conv2_bias;
};

// x (F, H, W, C), the frames of one video -> x + gate * filters(x). mod, which may be empty:
// (1, 1|F, C), added behind the first filter. Means and deviations are those of all frames.
inline Tensor frame_residual(Context& ctx, const Tensor& x, const FrameFilters& w,
                             const Tensor& mod, const Tensor& gate,
                             const heddle_group_norm_attrs& attrs) {
  constexpr heddle_conv3d_attrs kThree{{1, 1, 1}, {1, 0, 0, 1, 0, 0}};
  const std::int64_t frames = x.size(0), height = x.size(1), width = x.size(2),
                     channels = x.size(3),
                     rows = checked_product({frames, height}, "the rows of a video");
  const Shape tall{1, rows, width, channels}, video{1, frames, height, width, channels};
  const auto filtered = [&](const Tensor& in, const Tensor& filter, const Tensor& bias) {
    const Tensor out = ctx.make(video);
    ops::conv3d_into(ctx, in.reshape(video), filter, bias, kThree, {}, out);
    return out.reshape(tall);
  };
  const bool is_even = mod && mod.size(1) == 1;
  Tensor bias = w.conv1_bias;
  if (is_even) {
    const Tensor sum = ctx.make({1, channels}, HEDDLE_F32);
    ops::add_into(ctx, mod.reshape({1, channels}), bias.reshape({1, channels}), sum);
    bias = sum.reshape({channels});
  }
  Tensor made =
      filtered(ops::group_norm(ctx, x.reshape(tall), w.norm1, w.norm1_bias, attrs), w.conv1, bias);
  if (mod && !is_even)
    made = ops::add(ctx, made.reshape({frames, height * width, channels}),
                    mod.reshape({frames, 1, channels}))
               .reshape(tall);
  made = filtered(ops::group_norm(ctx, made, w.norm2, w.norm2_bias, attrs), w.conv2, w.conv2_bias);
  const Shape flat{1, rows * width, channels};
  return ops::gated_add(ctx, x.reshape(flat), gate, made.reshape(flat)).reshape(x.shape());
}

}  // namespace heddle::blocks
