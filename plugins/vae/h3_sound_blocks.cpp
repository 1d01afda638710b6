#include "h3_sound_blocks.h"

#include <cmath>
#include <limits>

#include <heddle/batch_ops.hpp>
#include <heddle/ops.hpp>

#include "plugins/blocks/wide.h"

namespace heddle::vae {
namespace {

constexpr double kSoundEnd = std::numeric_limits<float>::max();
// Points that half of a filter around an activation reads beyond its place.
constexpr std::int64_t kSoundReach = 3;
// What is added to a divisor.
constexpr double kSoundLeast = 1e-9;

Tensor sound_scaled(Context& ctx, const Tensor& x, double scale, double shift = 0) {
  return ops::scale_clamp(ctx, x, {scale, shift, -kSoundEnd, kSoundEnd});
}

// 1 / (x + a little): x / x^2, of either sign.
Tensor sound_inverse(Context& ctx, const Tensor& x) {
  const Tensor y = sound_scaled(ctx, x, 1, kSoundLeast),
               root = ops::rsqrt(ctx, ops::mul(ctx, y, y));
  return ops::mul(ctx, y, ops::mul(ctx, root, root));
}

// e^x = ((1 + t) / (1 - t))^8, t the tangent of x / 16: exact to the last bits for |x| < 16.
Tensor sound_power(Context& ctx, const Tensor& x) {
  const Tensor t = ops::activate(ctx, sound_scaled(ctx, x, 1.0 / 16), HEDDLE_ACT_TANH);
  const Tensor below = sound_scaled(ctx, t, -1, 1),
               root = ops::rsqrt(ctx, ops::mul(ctx, below, below));
  Tensor power = ops::mul(ctx, sound_scaled(ctx, t, 1, 1), root);
  for (int i = 0; i < 3; ++i) power = ops::mul(ctx, power, power);
  return power;
}

// x + sin(a x)^2 times what 1 / b is; x (..., C) f32 without gaps, a and inverse (C).
Tensor sound_snake(Context& ctx, const Tensor& x, const Tensor& a, const Tensor& inverse) {
  Shape by_channel(x.rank(), 1);
  by_channel.back() = x.shape().back();
  const Tensor angles = ctx.make(x.shape(), HEDDLE_F32), made = ctx.make(x.shape(), HEDDLE_F32),
               waves = ctx.make({x.count(), 2}, HEDDLE_F32);
  ops::mul_into(ctx, x, a.reshape(by_channel), angles);
  ops::timestep_embedding_into(ctx, angles.reshape({x.count()}), {1, 2, 0, 0, 0}, waves);
  const Tensor sines = ops::contiguous(ctx, waves.slice(1, 0, 1)).reshape(x.shape());
  ops::mul_into(ctx, sines, sines, made);
  ops::mul_into(ctx, made, inverse.reshape(by_channel), made);
  ops::add_into(ctx, x, made, made);
  return made;
}

// x (n, T, C) with its first and last points repeated: (n, T + 6, C). Behind the last one stand
// those of `end` (n, 1, C), before the first one those of `begin`.
void sound_framed(Context& ctx, const Tensor& x, const Tensor& begin, const Tensor& end,
                  const Tensor& out) {
  const std::int64_t length = x.size(1);
  const Tensor ones = ctx.make({1, kSoundReach, 1}, HEDDLE_F32);
  ops::fill(ctx, ones, 1);
  ops::mul_into(ctx, begin, ones, out.slice(1, 0, kSoundReach));
  ops::copy_into(ctx, x, out.slice(1, kSoundReach, kSoundReach + length));
  ops::mul_into(ctx, end, ones, out.slice(1, kSoundReach + length, 2 * kSoundReach + length));
}

// x (n, T + 6, C) by one of the four filters: (n, T, C), a part of a tensor.
Tensor sound_filtered(Context& ctx, const Tensor& x, const Tensor& filters, std::int64_t number) {
  const Tensor one =
      filters.slice(0, number, number + 1).reshape({filters.size(1), 1, filters.size(3)});
  return ops::depthwise_conv2d(ctx, x.reshape({x.size(0), x.size(1), 1, x.size(2)}), one, {})
      .reshape(x.shape())
      .slice(1, kSoundReach, x.size(1) - kSoundReach);
}

// The activation at twice as many points, against aliasing.
Tensor sound_activated(Context& ctx, const Tensor& x, const Tensor& filters, const Tensor& alpha,
                       const Tensor& beta) {
  const std::int64_t items = x.size(0), length = x.size(1), channels = x.size(2),
                     wide = length + 2 * kSoundReach;
  const auto f32 = [&](const Shape& shape) { return ctx.make(shape, HEDDLE_F32); };
  const Tensor framed = f32({items, wide, channels});
  sound_framed(ctx, x, x.slice(1, 0, 1), x.slice(1, length - 1, length), framed);
  const Tensor both = f32({2, items, length, channels});
  for (int place = 0; place < 2; ++place)
    ops::copy_into(ctx, sound_filtered(ctx, framed, filters, place),
                   both.slice(0, place, place + 1).reshape({items, length, channels}));
  const Tensor active =
      sound_snake(ctx, both, sound_power(ctx, ops::cast(ctx, alpha, HEDDLE_F32)),
                  sound_inverse(ctx, sound_power(ctx, ops::cast(ctx, beta, HEDDLE_F32))));
  const auto half = [&](int place) {
    return active.slice(0, place, place + 1).reshape({items, length, channels});
  };
  const Tensor out = f32({items, length, channels});
  Tensor parts[2];
  for (int place = 0; place < 2; ++place) {
    const Tensor around = f32({items, wide, channels});
    sound_framed(ctx, half(place), half(0).slice(1, 0, 1), half(1).slice(1, length - 1, length),
                 around);
    // Every second tap meets the points between, the first tap one of these.
    parts[place] = sound_filtered(ctx, around, filters, place == 0 ? 3 : 2);
  }
  ops::add_into(ctx, parts[0], parts[1], out);
  return out;
}

// A filter as (K, in, out) in the compute type; spreads: it is (in, out, K).
Tensor sound_taps(Context& ctx, const Tensor& filter, const Tensor& gain, bool spreads) {
  Tensor whole = ops::cast(ctx, filter, HEDDLE_F32);
  if (gain) {
    const std::int64_t rows = filter.size(0), each = filter.count() / rows;
    const Tensor normed = ctx.make({rows, each}, HEDDLE_F32);
    ops::rms_norm_into(ctx, whole.reshape({rows, each}), {}, 0, normed);
    const Tensor lengths = sound_scaled(ctx, ops::cast(ctx, gain.reshape({rows, 1}), HEDDLE_F32),
                                        1 / std::sqrt(double(each)));
    ops::mul_into(ctx, normed, lengths, normed);
    whole = normed.reshape(filter.shape());
  }
  return ops::cast(ctx, spreads ? whole.permute({2, 0, 1}) : whole.permute({2, 1, 0}),
                   ctx.compute());
}

// rows (N, T, K in) times taps (K, in, out): (N, T, out) f32.
Tensor sound_product(Context& ctx, const Tensor& rows, const Tensor& taps, const Tensor& bias) {
  const std::int64_t points = rows.size(0) * rows.size(1), width = taps.size(0) * taps.size(1);
  const Tensor made = ops::batched_product(ctx, rows.reshape({1, points, width}),
                                           taps.reshape({1, width, taps.size(2)}), HEDDLE_F32)
                          .reshape({rows.size(0), rows.size(1), taps.size(2)});
  if (bias) ops::add_into(ctx, made, bias.reshape({1, 1, taps.size(2)}), made);
  return made;
}

// x (N, T, C) in the compute type with zeros before it, and behind it up to `length`.
Tensor sound_operand(Context& ctx, const Tensor& x, std::int64_t before, std::int64_t length) {
  const Tensor wide = ctx.make({x.size(0), length, x.size(2)});
  const std::int64_t end = before + x.size(1);
  if (before > 0) ops::fill(ctx, wide.slice(1, 0, before), 0);
  if (end < length) ops::fill(ctx, wide.slice(1, end, length), 0);
  ops::copy_into(ctx, x, wide.slice(1, before, end));
  return wide;
}

}  // namespace

void H3SoundIn::execute(Context& ctx) {
  const Tensor given = ctx[x];
  if (ctx[sound]) {
    const std::int64_t items = given.size(0) * given.size(1), length = given.size(2),
                       each = ctx[hop], whole = (length + each - 1) / each * each;
    const Tensor rows = ctx.make({items, whole, 1}, HEDDLE_F32);
    ops::copy_into(ctx, given.reshape({items, length, 1}), rows.slice(1, 0, length));
    if (length < whole) ops::fill(ctx, rows.slice(1, length, whole), 0);
    ctx[out] = rows;
    return;
  }
  const Tensor all =
      given.rank() == 4 ? given : given.reshape({given.size(0), given.size(1), 1, given.size(2)});
  ctx[out] = ops::cast(ctx, all.permute({0, 2, 3, 1}), HEDDLE_F32)
                 .reshape({all.size(0) * all.size(2), all.size(3), all.size(1)});
}

void H3SoundFilters::execute(Context& ctx) {
  const std::int64_t channels = ctx[hidden].size(2), count = 2 * kSoundReach + 1;
  const Tensor ones = ctx.make({1, channels}, HEDDLE_F32),
               all = ctx.make({4, count, 1, channels}, HEDDLE_F32);
  ops::fill(ctx, ones, 1);
  ops::fill(ctx, all, 0);
  for (int i = 0; i < 4; ++i) {
    const Tensor pairs = ops::cast(ctx, i < 2 ? ctx[up] : ctx[down], HEDDLE_F32)
                             .reshape({count - 1, 2})
                             .slice(1, i % 2, i % 2 + 1);
    // Twice as many points share what one was.
    const Tensor taps = sound_scaled(ctx, ops::contiguous(ctx, pairs), i < 2 ? 2 : 1);
    ops::mul_into(
        ctx, taps, ones,
        all.slice(0, i, i + 1).reshape({count, channels}).slice(0, i % 2, count - 1 + i % 2));
  }
  ctx[out] = all;
}

void H3SoundConv::execute(Context& ctx) {
  Tensor x = ctx[hidden];
  if (ctx.has(filters)) {
    x = sound_activated(ctx, x, ctx[filters], ctx[alpha], ctx[beta]);
  } else if (const Tensor a = ctx[alpha]) {
    const Tensor numbers = ops::cast(ctx, a, HEDDLE_F32).reshape({x.size(2)});
    x = sound_snake(ctx, x, numbers, sound_inverse(ctx, numbers));
  }
  const Tensor taps = sound_taps(ctx, ctx[filter], ctx[gain], false);
  const std::int64_t count = taps.size(0), channels = x.size(2), step = ctx[stride],
                     apart = ctx[dilation];
  Tensor rows;
  if (step > 1) {
    const std::int64_t length = x.size(1) / step;
    const Tensor blocks = sound_operand(ctx, x, (step + 1) / 2, (length + 2) * step)
                              .reshape({x.size(0), length + 2, step * channels});
    rows = ctx.make({x.size(0), length, 2 * step * channels});
    for (std::int64_t k = 0; k < 2; ++k)
      ops::copy_into(ctx, blocks.slice(1, k, k + length),
                     rows.slice(2, k * step * channels, (k + 1) * step * channels));
  } else {
    const std::int64_t around = apart * (count - 1) / 2, length = x.size(1);
    const Tensor wide = sound_operand(ctx, x, around, length + 2 * around);
    rows = ctx.make({x.size(0), length, count * channels});
    for (std::int64_t k = 0; k < count; ++k)
      ops::copy_into(ctx, wide.slice(1, k * apart, k * apart + length),
                     rows.slice(2, k * channels, (k + 1) * channels));
  }
  const Tensor made = sound_product(ctx, rows, taps, ctx[bias]);
  if (ctx.has(base)) ops::add_into(ctx, made, ctx[base], made);
  ctx[out] = made;
}

void H3SoundUp::execute(Context& ctx) {
  const Tensor x = ctx[hidden], taps = sound_taps(ctx, ctx[filter], ctx[gain], true);
  const std::int64_t step = ctx[factor], count = taps.size(0), length = x.size(1),
                     before = (count - step) / 2, around = (count + step - 1) / step,
                     in = taps.size(1), channels = taps.size(2);
  const Tensor wide = sound_operand(ctx, x, around, length + 2 * around);
  const Tensor made = ctx.make({x.size(0), length, step, channels}, HEDDLE_F32);
  // Tap k brings point t to step t - before + k: each place among `step` has taps of its own.
  for (std::int64_t place = 0; place < step; ++place) {
    const std::int64_t first = (place + before) % step, some = (count - first + step - 1) / step;
    const Tensor rows = ctx.make({x.size(0), length, some * in}),
                 own = ctx.make({some, in, channels});
    for (std::int64_t i = 0; i < some; ++i) {
      const std::int64_t k = first + i * step, begin = around + (place + before - k) / step;
      ops::copy_into(ctx, wide.slice(1, begin, begin + length),
                     rows.slice(2, i * in, (i + 1) * in));
      ops::copy_into(ctx, taps.slice(0, k, k + 1), own.slice(0, i, i + 1));
    }
    ops::copy_into(
        ctx, sound_product(ctx, rows, own, ctx[bias]).reshape({x.size(0), length, 1, channels}),
        made.slice(2, place, place + 1));
  }
  ctx[out] = made.reshape({x.size(0), length * step, channels});
}

void H3SoundProject::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t items = x.size(0), length = x.size(1), width = x.size(2), count = ctx[heads],
                     size = width / count, channels = ctx[proj].size(0), each = size / channels;
  const auto normed = [&](const Tensor& of, const Weight& weight, const Weight& offset) {
    const Tensor made = ctx.make(of.shape());
    ops::layer_norm_into(ctx, of, ctx[weight], ctx[offset], ctx[eps], made);
    return made;
  };
  const Tensor all = ops::linear(ctx, normed(x, norm1, norm1_bias), ctx[qkv], ctx[qkv_bias])
                         .reshape({items, length, 3, count, size});
  const auto part = [&](int i) {
    return ops::contiguous(ctx, all.slice(2, i, i + 1)).reshape({items, length, count, size});
  };
  const Tensor found = ops::attention(ctx, part(0), part(1), part(2), {},
                                      1 / std::sqrt(double(size)), ops::Mask::causal);
  const Tensor grouped =
      ops::cast(ctx, found.reshape({items, length, count, channels, each}).permute({0, 1, 3, 2, 4}),
                HEDDLE_F32);
  const Tensor shares = ctx.make({1, count * each, 1}, HEDDLE_F32);
  ops::fill(ctx, shares, 1.0 / double(count * each));
  const Tensor means = ops::batched_product(
      ctx, grouped.reshape({1, items * length * channels, count * each}), shares, HEDDLE_F32);
  const Tensor pool = ops::cast(ctx, means.reshape({items, length, channels}), ctx.compute());
  const Tensor seen =
      blocks::wide_linear(ctx, normed(x, norm3, norm3_bias), ctx[proj], ctx[proj_bias]);
  const Tensor sum =
      blocks::wide_linear(ctx, pool, ctx[pooled], ctx[pooled_bias], HEDDLE_ACT_NONE, seen);
  const Tensor inner = ctx.make(sum.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, sum, ctx[norm2], ctx[norm2_bias], ctx[eps], inner);
  const Tensor rows = normed(inner, norm, norm_bias);
  const Tensor active =
      ops::gated_activation(ctx, ops::linear(ctx, rows, ctx[gate], ctx[gate_bias]),
                            ops::linear(ctx, rows, ctx[up], ctx[up_bias]), HEDDLE_ACT_GELU_TANH);
  ctx[out] = blocks::wide_linear(ctx, active, ctx[down], ctx[down_bias], HEDDLE_ACT_NONE, sum);
}

void H3SoundOut::execute(Context& ctx) {
  const Tensor rows = ctx[hidden], given = ctx[x];
  const std::int64_t items = given.size(0);
  if (ctx[sound]) {
    ctx[out] = ops::scale_clamp(ctx, rows.reshape({items, rows.size(0) / items, rows.size(1)}),
                                {1, 0, -1, 1});
    return;
  }
  const Tensor all = rows.reshape({items, rows.size(0) / items, rows.size(1), rows.size(2)});
  ctx[out] = ops::contiguous(ctx, all.permute({0, 3, 1, 2}));
}

}  // namespace heddle::vae
