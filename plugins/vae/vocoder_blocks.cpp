#include "vocoder_blocks.h"

#include <algorithm>
#include <vector>

#include <heddle/ops.hpp>

namespace heddle::vae {
namespace {

std::vector<Tensor> taps_of(Context& ctx) {
  std::vector<Tensor> taps;
  for (const Weight* tap : VocoderTaps::all)
    if (const Tensor matrix = ctx[*tap]) taps.push_back(matrix);
  return taps;
}

// x (B, T, C), numbers below 0 times the slope, in the compute type, with `around` zeros before and
// behind it.
Tensor vocoder_operand(Context& ctx, const Tensor& x, double slope, std::int64_t around) {
  const std::int64_t length = x.size(1);
  const Tensor wide = ctx.make({x.size(0), length + 2 * around, x.size(2)});
  const Tensor inside = wide.slice(1, around, around + length);
  if (around > 0) {
    ops::fill(ctx, wide.slice(1, 0, around), 0);
    ops::fill(ctx, wide.slice(1, around + length, length + 2 * around), 0);
  }
  if (slope == 1.0) {
    ops::copy_into(ctx, x, inside);
  } else {
    const Tensor active = ctx.make(x.shape(), x.dtype());
    ops::leaky_relu_into(ctx, x, {}, slope, active);
    ops::copy_into(ctx, active, inside);
  }
  return wide;
}

// A tap at work: which points it reads.
struct TapAt {
  Tensor matrix;
  std::int64_t begin = 0;
};
// The sum of what taps make of `length` points of x (B, T, C) each, (B, length, C') f32; base, of
// that shape, may be none.
Tensor summed_taps(Context& ctx, const Tensor& x, const std::vector<TapAt>& taps,
                   const Tensor& bias, const Tensor& base, std::int64_t length) {
  const std::int64_t channels = taps.front().matrix.size(0);
  const Tensor made = ctx.make({x.size(0), length, channels}, HEDDLE_F32);
  const auto item = [](const Tensor& of, std::int64_t i) {
    return of.slice(0, i, i + 1).reshape({of.size(1), of.size(2)});
  };
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    Tensor sum = base ? item(base, i) : Tensor();
    for (std::size_t k = 0; k < taps.size(); ++k) {
      const bool is_last = k + 1 == taps.size();
      const Tensor to = is_last ? item(made, i) : ctx.make({length, channels}, HEDDLE_F32);
      ops::linear_into(ctx, item(x, i).slice(0, taps[k].begin, taps[k].begin + length),
                       taps[k].matrix, is_last ? bias : Tensor(), HEDDLE_ACT_NONE, sum, to);
      sum = to;
    }
  }
  return made;
}

}  // namespace

void VocoderIn::execute(Context& ctx) {
  const Tensor given = ctx[mel];
  const Tensor rows =
      ctx.make({given.size(0), given.size(2), given.size(1) * given.size(3)}, HEDDLE_F32);
  ops::copy_into(ctx, given.permute({0, 2, 1, 3}),
                 rows.reshape({given.size(0), given.size(2), given.size(1), given.size(3)}));
  ctx[out] = rows;
}

void VocoderConv::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::vector<Tensor> matrices = taps_of(ctx);
  if (x.size(2) != matrices.front().size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the vocoder reads " + std::to_string(matrices.front().size(1)) +
                    " numbers of a frame of the spectrum, got " + std::to_string(x.size(2)) +
                    ". Load both parts from one file.");
  const std::int64_t step = ctx[dilation], around = step * (std::int64_t(matrices.size()) - 1) / 2;
  std::vector<TapAt> taps;
  for (std::size_t k = 0; k < matrices.size(); ++k)
    taps.push_back({matrices[k], std::int64_t(k) * step});
  ctx[out] = summed_taps(ctx, vocoder_operand(ctx, x, ctx[slope], around), taps, ctx[bias],
                         ctx.has(base) ? ctx[base] : Tensor(), x.size(1));
}

void VocoderUpsample::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::vector<Tensor> matrices = taps_of(ctx);
  const std::int64_t step = ctx[factor], count = std::int64_t(matrices.size()), length = x.size(1),
                     before = (count - step) / 2, around = (count + step - 1) / step;
  const Tensor operand = vocoder_operand(ctx, x, ctx[slope], around);
  const std::int64_t channels = matrices.front().size(0);
  const Tensor made = ctx.make({x.size(0), length, step, channels}, HEDDLE_F32);
  // Tap k brings point t to step t - before + k: each place among `step` has taps of its own.
  for (std::int64_t place = 0; place < step; ++place) {
    std::vector<TapAt> taps;
    for (std::int64_t k = (place + before) % step; k < count; k += step)
      taps.push_back({matrices[std::size_t(k)], around + (place + before - k) / step});
    const Tensor points = summed_taps(ctx, operand, taps, ctx[bias], {}, length);
    ops::copy_into(ctx, points.reshape({x.size(0), length, 1, channels}),
                   made.slice(2, place, place + 1));
  }
  ctx[out] = made.reshape({x.size(0), length * step, channels});
}

void VocoderSum::execute(Context& ctx) {
  const double times = ctx[factor];
  std::vector<ops::Term> terms{{times, ctx[hidden]}};
  if (ctx.has(other)) terms.push_back({times, ctx[other]});
  ctx[out] = ops::combine(ctx, terms);
}

void VocoderOut::execute(Context& ctx) {
  const Tensor planes = ops::cast(ctx, ctx[hidden].permute({0, 2, 1}), HEDDLE_F32);
  const Tensor made = ctx.make(planes.shape(), HEDDLE_F32);
  ops::activate_into(ctx, planes, HEDDLE_ACT_TANH, made);
  ctx[waveform] = made;
}

}  // namespace heddle::vae
