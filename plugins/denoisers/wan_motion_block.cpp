#include "wan_motion_block.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <heddle/ops.hpp>

#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kFacesAtOnce = 4;
constexpr double kSlope = 0.2, kSeparation = 1e-8,
                 kEndless = std::numeric_limits<double>::infinity();
// The blur before pictures are halved: the products of these of a row and a column.
constexpr std::array<double, 4> kBlur = {1.0 / 8, 3.0 / 8, 3.0 / 8, 1.0 / 8};

double fan_in(const Tensor& weight) {
  double count = 1;
  for (const std::int64_t size : weight.shape()) count *= double(size);
  return 1 / std::sqrt(count / double(weight.size(0)));
}

Tensor times(Context& ctx, const Tensor& x, double factor) {
  return ops::scale_clamp(ctx, x, {factor, 0, -kEndless, kEndless});
}

constexpr heddle_conv2d_attrs stepping(std::int32_t step, std::int32_t around) {
  return {{step, step}, {around, around, around, around}};
}

// A filter and a leaky ReLU, without the factor sqrt 2 behind it: filters are linear, so what reads
// it applies the factor with its own.
Tensor filter_leaky(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const heddle_conv2d_attrs& attrs) {
  const Tensor made = ops::conv2d(ctx, x, weight, bias.reshape({weight.size(0)}), attrs);
  ops::leaky_relu_into(ctx, made, {}, kSlope, made);
  return made;
}

// x (N, H, W, C), blurred by 4 x 4 pixels and times a factor, with so many zeros around.
Tensor blurred(Context& ctx, const Tensor& x, double factor, std::int32_t around) {
  static const Op op(HEDDLE_OP_DEPTHWISE_CONV2D);
  constexpr auto kSide = std::int64_t(kBlur.size());
  const std::int64_t channels = x.size(3), more = 2 * around - kSide + 1;
  const Tensor kernel = ctx.make({kSide, kSide, channels}, HEDDLE_F32);
  for (std::int64_t row = 0; row < kSide; ++row)
    for (std::int64_t column = 0; column < kSide; ++column)
      ops::fill(ctx, kernel.slice(0, row, row + 1).slice(1, column, column + 1),
                factor * kBlur[std::size_t(row)] * kBlur[std::size_t(column)]);
  const Tensor out = ctx.make({x.size(0), x.size(1) + more, x.size(2) + more, channels});
  ctx.op(op, {x.raw(), kernel.raw(), nullptr}, {out.raw()}, stepping(1, around));
  return out;
}

// What the encoder makes of pictures (N, E, E, 3): (N, D).
Tensor encode_faces(Context& ctx, const Tensor& pictures) {
  using B = WanMotion;
  Tensor x = filter_leaky(ctx, times(ctx, pictures, fan_in(ctx[B::in])), ctx[B::in],
                          ctx[B::in_bias], stepping(1, 0));
  double pending = std::numbers::sqrt2;  // a factor that x lacks
  for (int k = 0; k < kMotionHalvings; ++k) {
    const Tensor first = ctx[B::first[k]];
    if (!first) break;
    const Tensor second = ctx[B::second[k]], beside = ctx[B::beside[k]];
    const Tensor same = filter_leaky(ctx, times(ctx, x, pending * fan_in(first)), first,
                                     ctx[B::first_bias[k]], stepping(1, 1));
    const Tensor half =
        filter_leaky(ctx, blurred(ctx, same, std::numbers::sqrt2 * fan_in(second), 2), second,
                     ctx[B::second_bias[k]], stepping(2, 0));
    // The sum of both is divided by sqrt 2, which the first lacks as a factor.
    x = ops::conv2d(ctx, blurred(ctx, x, pending * fan_in(beside) / std::numbers::sqrt2, 1), beside,
                    {}, stepping(2, 0), half);
    pending = 1;
  }
  const Tensor last = ctx[B::last];
  if (x.size(1) != last.size(2) || x.size(2) != last.size(3))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model reads square pictures of faces, of " +
                    std::to_string(pictures.size(1) / x.size(1) * last.size(2)) +
                    " pixels a side, got " + std::to_string(pictures.size(1)) + "x" +
                    std::to_string(pictures.size(2)) + ". Give it what WanAnimateToVideo makes.");
  Tensor told =
      blocks::wide_conv2d(ctx, times(ctx, x, pending * fan_in(last)), last, {}, stepping(1, 0))
          .reshape({pictures.size(0), last.size(0)});
  for (int k = 0; k < kMotionLinears; ++k) {
    const Tensor matrix = ctx[B::linear[k]];
    told =
        blocks::wide_linear(ctx, times(ctx, told, fan_in(matrix)), matrix, ctx[B::linear_bias[k]]);
  }
  return told;
}

// x (N, C) at right angles to row (1, C) of a length of sqrt 2: its reflection.
void reflect(Context& ctx, const Tensor& x, const Tensor& row) {
  const Tensor along = blocks::wide_linear(ctx, x, row, {});
  ops::combine_into(ctx, {{1, x}, {-1, ops::mul(ctx, along, row)}}, x);
}

// The rows that reflect as Householder's QR decomposition of columns (D, K) does, as LAPACK has it:
// (1, D - k) for the kth column.
std::vector<Tensor> reflections(Context& ctx, const Tensor& columns) {
  const std::int64_t count = columns.size(1), length = columns.size(0);
  const Tensor plain = ops::cast(ctx, columns.permute({1, 0}), HEDDLE_F32);
  const Tensor rows = ops::scale_clamp(ctx, plain, {1, kSeparation, -kEndless, kEndless});
  std::vector<Tensor> made;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t left = length - k;
    const Tensor own = ops::contiguous(ctx, rows.slice(0, k, k + 1).slice(1, k, length));
    const Tensor row = times(ctx, ops::rms_norm(ctx, own, {}, 0), 1 / std::sqrt(double(left)));
    // Of a row of length 1: its first number moves away from 0 by 1, then it has a length of
    // sqrt 2 |first moved|.
    const Tensor head = ops::contiguous(ctx, row.slice(1, 0, 1));
    const Tensor inverse = ops::rsqrt(ctx, ops::mul(ctx, head, head)),
                 sign = ops::mul(ctx, head, inverse), moved = ops::add(ctx, head, sign);
    ops::copy_into(ctx, moved, row.slice(1, 0, 1));
    const Tensor size = ops::mul(ctx, moved, sign);
    made.push_back(ops::mul(ctx, row, ops::rsqrt(ctx, size)));
    if (k + 1 < count) {
      const Tensor behind = ops::contiguous(ctx, rows.slice(0, k + 1, count).slice(1, k, length));
      reflect(ctx, behind, made.back());
      ops::copy_into(ctx, behind, rows.slice(0, k + 1, count).slice(1, k, length));
    }
  }
  return made;
}

// shares (N, K) of the directions at right angles, summed up: (N, D).
Tensor sum_directions(Context& ctx, const Tensor& shares, const Tensor& directions) {
  const std::vector<Tensor> rows = reflections(ctx, directions);
  const auto count = std::int64_t(rows.size());
  const std::int64_t length = directions.size(0);
  const Tensor sum = ctx.make({shares.size(0), length}, HEDDLE_F32);
  ops::fill(ctx, sum, 0);
  ops::copy_into(ctx, shares, sum.slice(1, 0, count));
  for (std::int64_t k = count; k-- > 0;) {
    const Tensor part = ops::contiguous(ctx, sum.slice(1, k, length));
    reflect(ctx, part, rows[std::size_t(k)]);
    ops::copy_into(ctx, part, sum.slice(1, k, length));
  }
  return sum;
}

}  // namespace

void WanMotion::execute(Context& ctx) {
  const Tensor axes = ctx[directions];
  if (!ctx.has(face)) {
    ctx[out] = ctx.make({1, 0, axes.size(0)}, HEDDLE_F32);
    return;
  }
  const Tensor video = ctx[face];
  const std::int64_t items = video.size(0), colours = video.size(1), frames = video.size(2),
                     height = video.size(3), width = video.size(4), shares = axes.size(1);
  if (colours != ctx[in].size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "pictures of faces have " +
                                             std::to_string(ctx[in].size(1)) + " colours, got " +
                                             std::to_string(colours));
  const Tensor told = ctx.make({items * frames, shares}, HEDDLE_F32);
  for (std::int64_t item = 0; item < items; ++item)
    for (std::int64_t first = 0; first < frames; first += kFacesAtOnce) {
      const std::int64_t end = std::min(first + kFacesAtOnce, frames);
      const Tensor pictures = ctx.make({end - first, height, width, colours});
      ops::copy_into(ctx,
                     video.slice(0, item, item + 1)
                         .slice(2, first, end)
                         .reshape({colours, end - first, height, width})
                         .permute({1, 2, 3, 0}),
                     pictures);
      ops::copy_into(ctx, encode_faces(ctx, pictures),
                     told.slice(0, item * frames + first, item * frames + end));
    }
  ctx[out] = sum_directions(ctx, told, axes).reshape({items, frames, axes.size(0)});
}

}  // namespace heddle::denoisers
