#include "latent_upsampler_blocks.h"

#include <algorithm>
#include <array>

#include <heddle/ops.hpp>

namespace heddle::vae {
namespace {

constexpr heddle_conv2d_attrs kUpSame{{1, 1}, {1, 1, 1, 1}};
constexpr heddle_group_norm_attrs kUpNorm{1e-5, 32, HEDDLE_ACT_NONE};

Tensor up_frame(const Tensor& x, std::int64_t item, std::int64_t frame) {
  return x.slice(0, item, item + 1)
      .slice(1, frame, frame + 1)
      .reshape({1, x.size(2), x.size(3), x.size(4)});
}

// x (B, F, H, W, C) by the filters of the frame before, of a frame itself and of the one behind.
Tensor up_convolved(Context& ctx, const Tensor& x, const std::array<Tensor, 3>& filters,
                    const Tensor& bias, heddle_dtype dtype) {
  const std::int64_t frames = x.size(1);
  const Tensor out = ctx.make({x.size(0), frames, x.size(2), x.size(3), filters[0].size(0)}, dtype);
  for (std::int64_t i = 0; i < x.size(0); ++i)
    for (std::int64_t t = 0; t < frames; ++t) {
      const std::int64_t first = std::max<std::int64_t>(t - 1, 0),
                         last = std::min<std::int64_t>(t + 1, frames - 1);
      Tensor sum;
      for (std::int64_t f = first; f <= last; ++f) {
        const Tensor seen = up_frame(x, i, f), &filter = filters[std::size_t(f - t + 1)];
        const Tensor made = ctx.make(ops::conv2d_shape(seen, filter, kUpSame), HEDDLE_F32);
        ops::conv2d_into(ctx, seen, filter, f == last ? bias : Tensor(), kUpSame, sum, made);
        sum = made;
      }
      ops::copy_into(ctx, sum, up_frame(out, i, t));
    }
  return out;
}

// Over all frames of a video.
Tensor up_normed(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor tall = x.reshape({x.size(0), x.size(1) * x.size(2), x.size(3), x.size(4)});
  return ops::group_norm(ctx, tall, weight, bias, kUpNorm).reshape(x.shape());
}

// A blur over five cells along each side, of which every `step`-th is kept; zeros are around. The
// weights of five cells are 1, 4, 6, 4, 1 sixteenths.
Tensor up_blurred(Context& ctx, const Tensor& x, std::int64_t step) {
  constexpr std::array<double, 5> kCells = {1, 4, 6, 4, 1};
  const Tensor filter = ctx.make({5, 5, x.size(3)});
  for (std::int64_t row = 0; row < 5; ++row)
    for (std::int64_t column = 0; column < 5; ++column)
      ops::fill(ctx, filter.slice(0, row, row + 1).slice(1, column, column + 1),
                kCells[std::size_t(row)] * kCells[std::size_t(column)] / 256);
  const Tensor blurred = ops::depthwise_conv2d(ctx, x, filter, {});
  const auto kept = [&](std::int64_t size) { return (size - 1) / step + 1; };
  const std::int64_t rows = kept(x.size(1)), columns = kept(x.size(2));
  // In squares of step x step cells, of which the first is kept.
  const std::int64_t items = x.size(0), channels = x.size(3);
  const Tensor out = ctx.make({items, rows, columns, channels}),
               squares = ctx.make({items, rows * step, columns * step, channels});
  ops::copy_into(ctx, blurred, squares.slice(1, 0, x.size(1)).slice(2, 0, x.size(2)));
  for (std::int64_t row = 0; row < rows; ++row)
    ops::copy_into(ctx,
                   squares.slice(1, row * step, row * step + 1)
                       .reshape({items, columns, step, channels})
                       .slice(2, 0, 1)
                       .reshape({items, 1, columns, channels}),
                   out.slice(1, row, row + 1));
  return out;
}

}  // namespace

void LatentUpIn::execute(Context& ctx) {
  const Tensor given = ctx[z];
  if (given.size(1) != ctx[first].size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the upscale model takes latents of " +
                                             std::to_string(ctx[first].size(1)) +
                                             " channels, got " + std::to_string(given.size(1)) +
                                             ". Load the one that belongs to the model.");
  const Tensor cells = ops::cast(ctx, given.permute({0, 2, 3, 4, 1}), ctx.compute());
  const Tensor made = up_normed(
      ctx,
      up_convolved(ctx, cells, {ctx[first], ctx[second], ctx[third]}, ctx[bias], ctx.compute()),
      ctx[norm], ctx[norm_bias]);
  ops::activate_into(ctx, made, HEDDLE_ACT_SILU, made);
  ctx[out] = made;
}

void LatentUpResnet::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor middle = up_normed(
      ctx,
      up_convolved(ctx, x, {ctx[first1], ctx[second1], ctx[third1]}, ctx[bias1], ctx.compute()),
      ctx[norm1], ctx[norm_bias1]);
  ops::activate_into(ctx, middle, HEDDLE_ACT_SILU, middle);
  const Tensor made = up_normed(ctx,
                                up_convolved(ctx, middle, {ctx[first2], ctx[second2], ctx[third2]},
                                             ctx[bias2], ctx.compute()),
                                ctx[norm2], ctx[norm_bias2]);
  ops::add_into(ctx, made, x, made);
  ops::activate_into(ctx, made, HEDDLE_ACT_SILU, made);
  ctx[out] = made;
}

void LatentUpGrow::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t n = ctx[times], height = x.size(2), width = x.size(3), channels = x.size(4),
                     every = ctx[step];
  const auto kept = [&](std::int64_t size) { return (n * size - 1) / every + 1; };
  const Tensor whole = ctx.make({x.size(0), x.size(1), kept(height), kept(width), channels});
  for (std::int64_t i = 0; i < x.size(0); ++i)
    for (std::int64_t t = 0; t < x.size(1); ++t) {
      const Tensor squares = ops::conv2d(ctx, up_frame(x, i, t), ctx[conv], ctx[bias], kUpSame);
      const Tensor cells = ctx.make({1, n * height, n * width, channels});
      ops::copy_into(ctx, squares.reshape({height, width, channels, n, n}),
                     cells.reshape({height, n, width, n, channels}).permute({0, 2, 4, 1, 3}));
      ops::copy_into(ctx, every == 1 ? cells : up_blurred(ctx, cells, every),
                     up_frame(whole, i, t));
    }
  ctx[out] = whole;
}

void LatentUpFrames::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t frames = x.size(1), height = x.size(2), width = x.size(3),
                     channels = x.size(4);
  const Tensor pairs =
      up_convolved(ctx, x, {ctx[first], ctx[second], ctx[third]}, ctx[bias], ctx.compute());
  const Tensor whole = ctx.make({x.size(0), 2 * frames - 1, height, width, channels});
  for (std::int64_t i = 0; i < x.size(0); ++i)
    for (std::int64_t t = 1; t < 2 * frames; ++t)
      ops::copy_into(ctx,
                     up_frame(pairs, i, t / 2)
                         .reshape({height, width, channels, 2})
                         .slice(3, t % 2, t % 2 + 1),
                     up_frame(whole, i, t - 1).reshape({height, width, channels, 1}));
  ctx[out] = whole;
}

void LatentUpOut::execute(Context& ctx) {
  const Tensor made =
      up_convolved(ctx, ctx[hidden], {ctx[first], ctx[second], ctx[third]}, ctx[bias], HEDDLE_F32);
  ctx[larger] = ops::contiguous(ctx, made.permute({0, 4, 1, 2, 3}));
}

}  // namespace heddle::vae
