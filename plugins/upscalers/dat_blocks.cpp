#include "dat_blocks.h"

#include <algorithm>

#include "plugins/blocks/wide.h"
#include "upscaler_blocks.h"
#include "windows.h"

namespace heddle::upscalers {
namespace {

constexpr double kLargest = 1e30;
constexpr double kNothing = 1e-20;  // added to a mean of squares that is divided by

// A norm by running means, of a convolution's result: x * scale + shift, both (C) f32.
struct RunningNorm {
  Tensor scale, shift;
};
RunningNorm running_norm(Context& ctx, const Weight& mean, const Weight& variance,
                         const Weight& gain, const Weight& shift) {
  const auto wide = [&](const Weight& weight) { return ops::cast(ctx, ctx[weight], HEDDLE_F32); };
  const Tensor spread =
      ops::rsqrt(ctx, ops::scale_clamp(ctx, wide(variance), {1, kNormEps, 0, kLargest}));
  const Tensor scale = ops::mul(ctx, wide(gain), spread);
  return {scale, ops::combine(ctx, {{1, wide(shift)}, {-1, ops::mul(ctx, wide(mean), scale)}})};
}

// (C, 1, R, S) as depthwise_conv2d/1 takes it: (R, S, C) f32.
Tensor channels_last(Context& ctx, const Tensor& filter) {
  return ops::cast(ctx, filter.permute({2, 3, 0, 1}), HEDDLE_F32)
      .reshape({filter.size(2), filter.size(3), filter.size(0)});
}

Tensor rectified(Context& ctx, const Tensor& x, const Weight& norm, const Weight& bias) {
  const Tensor normed = ops::layer_norm(ctx, x, ctx[norm], ctx[bias], kNormEps);
  ops::activate_into(ctx, normed, HEDDLE_ACT_RELU, normed);
  return normed;
}

// 1x1 convolutions with a norm and GELU between them, of x, then the sigmoid.
struct Weigher {
  const Weight &in, &in_bias, &mean, &variance, &gain, &shift, &out, &out_bias;
};
Tensor weights_of(Context& ctx, const Tensor& x, const Weigher& by) {
  const RunningNorm norm = running_norm(ctx, by.mean, by.variance, by.gain, by.shift);
  const Shape row{1, 1, 1, norm.scale.size(0)};
  const Tensor few = ops::conv2d(ctx, x, ctx[by.in], ctx[by.in_bias], kPoint);
  ops::mul_into(ctx, few, norm.scale.reshape(row), few);
  ops::add_into(ctx, few, norm.shift.reshape(row), few);
  ops::activate_into(ctx, few, HEDDLE_ACT_GELU, few);
  return sigmoid(ctx, ops::conv2d(ctx, few, ctx[by.out], ctx[by.out_bias], kPoint));
}

// 1 on the diagonal, for each head: (1, d, heads, d).
Tensor identities(Context& ctx, std::int64_t d, std::int64_t heads) {
  const Tensor line = ctx.make({d * (d + 1)});
  ops::fill(ctx, line, 0);
  ops::fill(ctx, line.reshape({d, d + 1}).slice(1, 0, 1), 1);
  const Tensor one = line.slice(0, 0, d * d).reshape({1, d, 1, d}),
               all = ctx.make({1, d, heads, d});
  for (std::int64_t h = 0; h < heads; ++h) ops::copy_into(ctx, one, all.slice(2, h, h + 1));
  return all;
}

// (S, C) -> (C, S), each row of a mean square of 1.
Tensor normalised_channels(Context& ctx, const Tensor& x) {
  return ops::rms_norm(ctx, ops::contiguous(ctx, x.permute({1, 0})), {}, kNothing);
}

// The square of head h on the diagonal of (C, C).
Tensor square_of(const Tensor& whole, std::int64_t h, std::int64_t d) {
  return whole.slice(0, h * d, (h + 1) * d).slice(1, h * d, (h + 1) * d);
}

}  // namespace

void DatBias::execute(Context& ctx) {
  const std::int64_t rows = 2 * ctx[height] - 1, columns = 2 * ctx[width] - 1;
  const Tensor grid = ctx.make({rows * columns, 3}, HEDDLE_F32);
  ops::grid_ids_into(
      ctx, {{1, rows, columns}, {0, double(1 - ctx[height]), double(1 - ctx[width])}}, grid);
  Tensor x =
      blocks::wide_linear(ctx, ops::contiguous(ctx, grid.slice(1, 1, 3)), ctx[in], ctx[in_bias]);
  x = blocks::wide_linear(ctx, rectified(ctx, x, norm1, norm1_bias), ctx[fc1], ctx[fc1_bias]);
  x = blocks::wide_linear(ctx, rectified(ctx, x, norm2, norm2_bias), ctx[fc2], ctx[fc2_bias]);
  x = blocks::wide_linear(ctx, rectified(ctx, x, norm3, norm3_bias), ctx[fc3], ctx[fc3_bias]);
  ctx[bias] = position_bias(ctx, x, ctx[ids]);
}

void DatIn::execute(Context& ctx) {
  const Tensor normed = ops::layer_norm(ctx, ctx[hidden], ctx[norm], ctx[norm_bias], kNormEps);
  const Tensor all = ops::linear(ctx, normed, ctx[qkv], ctx[qkv_bias]);
  const std::int64_t channels = normed.size(3);
  // The norm behind the convolution is put into it.
  const RunningNorm by = running_norm(ctx, mean, variance, gain, shift);
  const Tensor taps =
      ops::mul(ctx, channels_last(ctx, ctx[filter]), by.scale.reshape({1, 1, channels}));
  const Tensor own = ops::cast(ctx, ctx[filter_bias], HEDDLE_F32);
  const Tensor bias = ops::combine(ctx, {{1, ops::mul(ctx, own, by.scale)}, {1, by.shift}});
  const Tensor made =
      ops::depthwise_conv2d(ctx, all.slice(3, 2 * channels, 3 * channels), taps, bias);
  ops::activate_into(ctx, made, HEDDLE_ACT_GELU, made);
  ctx[projected] = all;
  ctx[side] = made;
}

void DatWindows::execute(Context& ctx) {
  const Tensor all = ctx[qkv];
  const std::int64_t batch = all.size(0), rows = all.size(1), columns = all.size(2),
                     channels = all.size(3) / 3, half = channels / 2;
  const std::int64_t multiple = std::max(ctx[height], ctx[width]);
  const auto whole = [&](std::int64_t size) { return (size + multiple - 1) / multiple * multiple; };
  const Shape shape{batch, whole(rows), whole(columns), 3, half};
  const bool is_shifted = ctx.has(upright_masks);
  const Tensor made = ctx.make({batch, shape[1], shape[2], channels});
  for (const int which : {0, 1}) {
    const Tensor part = ctx.make(shape);
    if (shape[1] != rows || shape[2] != columns) ops::fill(ctx, part, 0);
    ops::copy_into(
        ctx,
        all.reshape({batch, rows, columns, 3, channels}).slice(4, which * half, (which + 1) * half),
        part.slice(1, 0, rows).slice(2, 0, columns));
    const WindowSize window =
        which == 0 ? WindowSize{ctx[height], ctx[width]} : WindowSize{ctx[width], ctx[height]};
    Tensor masks;
    if (is_shifted) masks = which == 0 ? ctx[upright_masks] : ctx[lying_masks];
    attend_in_windows(
        ctx, part.reshape({batch, shape[1], shape[2], 3 * half}),
        {ctx[heads], window, is_shifted ? window.height / 2 : 0, is_shifted ? window.width / 2 : 0},
        which == 0 ? ctx[upright] : ctx[lying], masks,
        made.slice(3, which * half, (which + 1) * half));
  }
  ctx[out] = ops::contiguous(ctx, made.slice(1, 0, rows).slice(2, 0, columns));
}

void DatChannels::execute(Context& ctx) {
  const Tensor all = ctx[qkv], heat = ctx[temperature];
  const std::int64_t batch = all.size(0), places = all.size(1) * all.size(2),
                     channels = all.size(3) / 3, heads = heat.size(0), d = channels / heads;
  const Tensor made = ctx.make({batch, all.size(1), all.size(2), channels});
  const Tensor values = identities(ctx, d, heads), nothing = ctx.make({1, d, heads, d});
  ops::fill(ctx, nothing, 0);
  for (std::int64_t item = 0; item < batch; ++item) {
    const Tensor one = all.slice(0, item, item + 1).reshape({places, 3 * channels});
    // All channels with all, of which those of one head count: a product as large as a projection.
    const Tensor alike =
        blocks::wide_linear(ctx, normalised_channels(ctx, one.slice(1, 0, channels)),
                            normalised_channels(ctx, one.slice(1, channels, 2 * channels)), {});
    const Tensor scores = ctx.make({1, heads, d, d}, HEDDLE_F32);
    for (std::int64_t h = 0; h < heads; ++h)
      ops::mul_into(ctx, square_of(alike, h, d), heat.slice(0, h, h + 1).reshape({1, 1}),
                    scores.slice(1, h, h + 1).reshape({d, d}));
    ops::combine_into(ctx, {{1 / double(places), scores}}, scores);
    // The softmax by itself: attention to a matrix with ones on its diagonal.
    const Tensor shares = ops::attention(ctx, nothing, nothing, values, scores, 0);
    const Tensor mix = ctx.make({channels, channels});
    ops::fill(ctx, mix, 0);
    for (std::int64_t h = 0; h < heads; ++h)
      ops::copy_into(ctx, shares.slice(2, h, h + 1).reshape({d, d}), square_of(mix, h, d));
    ops::linear_into(ctx, one.slice(1, 2 * channels, 3 * channels), mix, {}, HEDDLE_ACT_NONE, {},
                     made.slice(0, item, item + 1).reshape({places, channels}));
  }
  ctx[out] = made;
}

void DatOut::execute(Context& ctx) {
  const Tensor x = ctx[hidden], windows = ctx[attended], convolved = ctx[side];
  const Weigher channels{channel_in,   channel_in_bias, channel_mean, channel_variance,
                         channel_gain, channel_shift,   channel_out,  channel_out_bias},
      places{place_in,   place_in_bias, place_mean, place_variance,
             place_gain, place_shift,   place_out,  place_out_bias};
  const bool swapped = ctx[by_channel];
  const Tensor of_channels = weights_of(ctx, mean_of(ctx, swapped ? windows : convolved), channels);
  const Tensor of_places = weights_of(ctx, swapped ? convolved : windows, places);
  const Tensor sum = ops::add(ctx, ops::mul(ctx, windows, swapped ? of_places : of_channels),
                              ops::mul(ctx, convolved, swapped ? of_channels : of_places));
  const Tensor middle = ops::linear(ctx, sum, ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE, x);
  const Tensor normed = ops::layer_norm(ctx, middle, ctx[norm], ctx[norm_bias], kNormEps);
  const Tensor wide = ops::linear(ctx, normed, ctx[fc1], ctx[fc1_bias], HEDDLE_ACT_GELU);
  const std::int64_t half = wide.size(3) / 2;
  const Tensor gated = ops::layer_norm(ctx, wide.slice(3, half, 2 * half), ctx[gate_norm],
                                       ctx[gate_norm_bias], kNormEps);
  const Tensor open =
      ops::depthwise_conv2d(ctx, gated, channels_last(ctx, ctx[gate]), ctx[gate_bias]);
  ctx[out] = ops::linear(ctx, ops::mul(ctx, wide.slice(3, 0, half), open), ctx[fc2], ctx[fc2_bias],
                         HEDDLE_ACT_NONE, middle);
}

}  // namespace heddle::upscalers
