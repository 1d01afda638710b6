#include "upscaler_blocks.h"

#include <algorithm>

namespace heddle::upscalers {
namespace {

constexpr double kMean[3] = {0.4488, 0.4371, 0.4040};

// Of the place `at` behind a side of `size`: the pixel that stands there mirrored; where the mirror
// ends, its last.
std::int64_t mirrored(std::int64_t at, std::int64_t size) {
  return std::max<std::int64_t>(2 * size - 2 - at, 0);
}

}  // namespace

Tensor leaky_conv(Context& ctx, const Tensor& x, const Tensor& filter, const Tensor& bias,
                  double slope) {
  const Tensor out = ops::conv2d(ctx, x, filter, bias, kSame);
  leak(ctx, out, slope);
  return out;
}

Tensor shuffled(Context& ctx, const Tensor& x, std::int64_t factor) {
  const std::int64_t batch = x.size(0), height = x.size(1), width = x.size(2),
                     channels = x.size(3) / (factor * factor);
  const Tensor out = ctx.make({batch, height * factor, width * factor, channels}, x.dtype());
  ops::copy_into(
      ctx, x.reshape({batch, height, width, channels, factor, factor}).permute({0, 1, 4, 2, 5, 3}),
      out.reshape({batch, height, factor, width, factor, channels}));
  return out;
}

Tensor unshuffled(Context& ctx, const Tensor& x, std::int64_t factor) {
  const std::int64_t batch = x.size(0), height = x.size(1) / factor, width = x.size(2) / factor,
                     channels = x.size(3);
  const Tensor out = ctx.make({batch, height, width, channels * factor * factor}, x.dtype());
  ops::copy_into(
      ctx, x.reshape({batch, height, factor, width, factor, channels}).permute({0, 1, 3, 5, 2, 4}),
      out.reshape({batch, height, width, channels, factor, factor}));
  return out;
}

Tensor mirrored_to(Context& ctx, const Tensor& x, std::int64_t rows, std::int64_t columns) {
  const std::int64_t height = x.size(1), width = x.size(2);
  if (rows == height && columns == width) return ops::contiguous(ctx, x);
  const Tensor whole = ctx.make({x.size(0), rows, columns, x.size(3)}, x.dtype());
  // The rows below are whole copies of these.
  const Tensor above = whole.slice(1, 0, height);
  ops::copy_into(ctx, x, above.slice(2, 0, width));
  const auto copy = [&](const Tensor& of, int axis, std::int64_t from, std::int64_t to) {
    ops::copy_into(ctx, of.slice(axis, from, from + 1), of.slice(axis, to, to + 1));
  };
  for (std::int64_t column = width; column < columns; ++column)
    copy(above, 2, mirrored(column, width), column);
  for (std::int64_t row = height; row < rows; ++row) copy(whole, 1, mirrored(row, height), row);
  return whole;
}

Tensor colour_mean(Context& ctx, std::int64_t colours, double factor) {
  const Tensor mean = ctx.make({1, 1, 1, colours}, HEDDLE_F32);
  if (colours != 3) {
    ops::fill(ctx, mean, 0);
    return mean;
  }
  for (int c = 0; c < 3; ++c) ops::fill(ctx, mean.slice(3, c, c + 1), factor * kMean[c]);
  return mean;
}

Tensor mean_of(Context& ctx, const Tensor& x) {
  const std::int64_t batch = x.size(0), height = x.size(1), width = x.size(2), channels = x.size(3);
  const auto mean = [&](const Tensor& values) {  // (N, K, C) -> (N, 1, C)
    const Tensor v = values.reshape({values.size(0), values.size(1), 1, channels});
    const Tensor keys = v.slice(3, 0, 1);  // any: they count nothing
    return ops::attention(ctx, keys.slice(1, 0, 1), keys, v, {}, 0);
  };
  const Tensor rows = mean(x.reshape({batch * height, width, channels}));
  return mean(rows.reshape({batch, height, channels})).reshape({batch, 1, 1, channels});
}

Tensor sigmoid(Context& ctx, const Tensor& x) {
  const Tensor half = scaled(ctx, x, 0.5);
  ops::activate_into(ctx, half, HEDDLE_ACT_TANH, half);
  return ops::scale_clamp(ctx, half, {0.5, 0.5, 0, 1});
}

}  // namespace heddle::upscalers
