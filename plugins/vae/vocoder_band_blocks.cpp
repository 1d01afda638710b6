#include "vocoder_band_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <heddle/batch_ops.hpp>
#include <heddle/ops.hpp>

namespace heddle::vae {
namespace {

constexpr double kBandEnd = std::numeric_limits<float>::max();
constexpr double kQuietest = 1e-5;  // what a band is at least, before its logarithm
constexpr double kCrossings = 6, kRolloff = 0.99;

Tensor band_scaled(Context& ctx, const Tensor& x, double scale, double shift) {
  return ops::scale_clamp(ctx, x, {scale, shift, -kBandEnd, kBandEnd});
}

// The square root of x >= 0.
Tensor band_root(Context& ctx, const Tensor& x) {
  return ops::mul(ctx, x, ops::rsqrt(ctx, band_scaled(ctx, x, 1, 1e-30)));
}

// The natural logarithm of x > 0: 16 times that of u, its 16th root, which is twice
// z + z^3 / 3 + z^5 / 5 + ..., z = (u - 1) / (u + 1). Up to z^15: exact to some 1e-6 where
// |ln x| < 12.
Tensor band_logarithm(Context& ctx, const Tensor& x) {
  constexpr int kRoots = 4, kTerms = 8;
  Tensor root = x;
  for (int i = 0; i < kRoots; ++i) root = ops::rsqrt(ctx, root);
  const Tensor above = band_scaled(ctx, root, 1, 1),
               inverse = ops::rsqrt(ctx, ops::mul(ctx, above, above)),
               z = ops::mul(ctx, band_scaled(ctx, root, 1, -1), inverse),
               square = ops::mul(ctx, z, z);
  Tensor sum = band_scaled(ctx, square, 1.0 / (2 * kTerms - 1), 1.0 / (2 * kTerms - 3));
  for (int i = kTerms - 3; i >= 0; --i)
    sum = band_scaled(ctx, ops::mul(ctx, sum, square), 1, 1.0 / (2 * i + 1));
  return band_scaled(ctx, ops::mul(ctx, sum, z), 2.0 * (1 << kRoots), 0);
}

// (R, K) times weight (C, ..., K): (R, C).
Tensor band_product(Context& ctx, const Tensor& rows, const Tensor& weight) {
  const std::int64_t channels = weight.size(0), width = rows.size(1);
  const Tensor matrix = ops::contiguous(
      ctx, ops::cast(ctx, weight, HEDDLE_F32).reshape({channels, width}).permute({1, 0}));
  return ops::batched_product(ctx, rows.reshape({1, rows.size(0), width}),
                              matrix.reshape({1, width, channels}), HEDDLE_F32)
      .reshape({rows.size(0), channels});
}

// Windows of sounds (n, T): (n T / hop, N), each of the N points up to the end of its hop, of which
// those before the sound are zeros.
Tensor windows_of(Context& ctx, const Tensor& sounds, std::int64_t hop, std::int64_t length) {
  const std::int64_t items = sounds.size(0), points = sounds.size(1), count = points / hop,
                     before = std::max<std::int64_t>(0, length - hop),
                     blocks = (length + hop - 1) / hop, room = (count + blocks - 1) * hop;
  const Tensor wide = ctx.make({items, std::max(room, before + points)}, HEDDLE_F32);
  ops::fill(ctx, wide, 0);
  ops::copy_into(ctx, sounds, wide.slice(1, before, before + points));
  const Tensor rows = ctx.make({items, count, length}, HEDDLE_F32);
  // The same points as blocks of one hop: a window is some of these and a part of the last.
  const Tensor parts =
      ops::contiguous(ctx, wide.slice(1, 0, room)).reshape({items, count + blocks - 1, hop});
  for (std::int64_t k = 0; k < blocks; ++k) {
    const std::int64_t begin = k * hop, end = std::min(length, begin + hop);
    ops::copy_into(ctx, parts.slice(1, k, k + count).slice(2, 0, end - begin),
                   rows.slice(2, begin, end));
  }
  return rows.reshape({items * count, length});
}

// A tap of the filter between points, `at` of which make one of the sound.
double widening_tap(std::int64_t tap, std::int64_t ratio, std::int64_t width) {
  const double time = (double(tap) / double(ratio) - double(width)) * kRolloff,
               bounded = std::clamp(time, -kCrossings, kCrossings),
               wave = std::cos(bounded * std::numbers::pi / kCrossings / 2),
               turned = std::numbers::pi * time;
  return kRolloff * wave * wave * (time == 0 ? 1.0 : std::sin(turned) / turned);
}

// Sounds (n, T) at `ratio` times the rate: (n, ratio T). Around them are their first and last
// points.
Tensor widened(Context& ctx, const Tensor& sounds, std::int64_t ratio) {
  const auto width = std::int64_t(std::ceil(kCrossings / kRolloff));
  const std::int64_t items = sounds.size(0), points = sounds.size(1), seen = 2 * width + 1;
  const Tensor wide = ctx.make({items, points + 2 * width}, HEDDLE_F32),
               ones = ctx.make({1, width}, HEDDLE_F32), taps = ctx.make({seen, ratio}, HEDDLE_F32),
               rows = ctx.make({items, points, seen}, HEDDLE_F32);
  ops::fill(ctx, ones, 1);
  ops::mul_into(ctx, sounds.slice(1, 0, 1), ones, wide.slice(1, 0, width));
  ops::copy_into(ctx, sounds, wide.slice(1, width, width + points));
  ops::mul_into(ctx, sounds.slice(1, points - 1, points), ones,
                wide.slice(1, width + points, 2 * width + points));
  // What the point `m` behind the first of a window adds to the place `p` of its middle.
  ops::fill(ctx, taps, 0);
  for (std::int64_t m = 0; m < seen; ++m) {
    ops::copy_into(ctx, wide.slice(1, m, m + points).reshape({items, points, 1}),
                   rows.slice(2, m, m + 1));
    for (std::int64_t p = 0; p < ratio; ++p)
      if (const std::int64_t tap = p + 2 * width * ratio - ratio * m; tap <= 2 * width * ratio)
        ops::fill(ctx, taps.slice(0, m, m + 1).slice(1, p, p + 1), widening_tap(tap, ratio, width));
  }
  return ops::batched_product(ctx, rows.reshape({1, items * points, seen}),
                              taps.reshape({1, seen, ratio}), HEDDLE_F32)
      .reshape({items, points * ratio});
}

// (B, T, S) -> (B S, T).
Tensor apart(Context& ctx, const Tensor& x) {
  return ops::contiguous(ctx, x.permute({0, 2, 1})).reshape({x.size(0) * x.size(2), x.size(1)});
}

}  // namespace

void VocoderMel::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t step = ctx[hop], items = x.size(0), channels = x.size(2),
                     count = x.size(1) / step, length = ctx[basis].size(2),
                     waves = ctx[basis].size(0) / 2, made = ctx[bands].size(0);
  const double end = ctx[limit];
  const Tensor bounded = ctx[tanh] ? ops::activate(ctx, x, HEDDLE_ACT_TANH)
                                   : ops::scale_clamp(ctx, x, {1, 0, -end, end});
  const Tensor spectrum =
      band_product(ctx, windows_of(ctx, apart(ctx, bounded), step, length), ctx[basis]);
  const Tensor squares = ops::mul(ctx, spectrum, spectrum);
  const Tensor power = ctx.make({spectrum.size(0), waves}, HEDDLE_F32);
  ops::add_into(ctx, squares.slice(1, 0, waves), squares.slice(1, waves, 2 * waves), power);
  const Tensor loud = band_product(ctx, band_root(ctx, power), ctx[bands]);
  const Tensor rows = band_logarithm(ctx, ops::scale_clamp(ctx, loud, {1, 0, kQuietest, kBandEnd}));
  ctx[sound] = bounded;
  ctx[out] =
      ops::contiguous(ctx, rows.reshape({items, channels, count, made}).permute({0, 2, 1, 3}))
          .reshape({items, count, channels * made});
}

void VocoderWiden::execute(Context& ctx) {
  const Tensor x = ctx[sound];
  const std::int64_t times = ctx[ratio];
  const Tensor low = widened(ctx, apart(ctx, x), times), high = apart(ctx, ctx[hidden]);
  ctx[waveform] = ops::scale_clamp(ctx, ops::add(ctx, low, high), {1, 0, -1, 1})
                      .reshape({x.size(0), x.size(2), x.size(1) * times});
}

}  // namespace heddle::vae
