// The source of the VectorKernels tables: included by one file per instruction set, after it has
// told the compiler which. Those files include the headers named below before that, and nothing
// else: an inline function of the standard library compiled here with AVX-512 might otherwise be
// the one that the linker picks for the whole plugin. Uses the vector types of GCC and clang.
#pragma once

#include <cstdint>
#include <cstring>

#include "vector_kernels.h"
#include "vector_types.h"

namespace heddle::cpu {

namespace {

// ---- functions ----

// x = n ln 2 + r with whole n: e^x = 2^n p(r), where p is the polynomial of degree 6 with the least
// relative error on |r| <= ln 2 / 2. REQUIRES: x from kSmallestPower to kLargestPower, or NaN.
constexpr float kLargestPower = 88.72283f,
                kSmallestPower = -87.33654f;  // of e, that give a normal number
struct Power {
  Ints n;
  Floats p;
};
[[gnu::always_inline]] inline Power split_power(Floats x) {
  constexpr float kRound =
      12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest whole number in the low bits
  constexpr std::int32_t kRoundBits = 0x4b400000;
  constexpr float kLog2E = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const Floats shifted = x * kLog2E + kRound;
  const Floats n = shifted - kRound;
  const Floats r = (x - n * kLn2High) - n * kLn2Low;
  Floats p = all(0.0013836835278198123f);
  p = p * r + 0.008374824188649654f;
  p = p * r + 0.04166822507977486f;
  p = p * r + 0.16666419804096222f;
  p = p * r + 0.49999991059303284f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return {load<Ints>(&shifted) - kRoundBits, p};
}

// NaN fails every comparison below and stays. Where the result is smaller than a normal number it
// is 0.
[[gnu::always_inline]] inline Floats exponential(Floats x) {
  const Power power = split_power(
      x > kLargestPower ? all(kLargestPower) : (x < kSmallestPower ? all(kSmallestPower) : x));
  // n reaches 128, whose power is no float: two factors.
  const Ints half = power.n >> 1;
  const Ints first = (half + 127) << 23, second = (power.n - half + 127) << 23;
  const Floats result = power.p * load<Floats>(&first) * load<Floats>(&second);
  const Floats bounded = x > kLargestPower ? all(__builtin_inff()) : result;
  return x < kSmallestPower ? Floats{} : bounded;
}

// The same for x <= 0, where n fits into one factor.
[[gnu::always_inline]] inline Floats exponential_of_negative(Floats x) {
  const Power power = split_power(x < kSmallestPower ? all(kSmallestPower) : x);
  const Ints factor = (power.n + 127) << 23;
  const Floats result = power.p * load<Floats>(&factor);
  return x < kSmallestPower ? Floats{} : result;
}

Floats sigmoid(Floats x) { return 1.0f / (1.0f + exponential(-x)); }

// The normal distribution's integral, by erfc(z) = exp(-z^2) t p(t), t = 1 / (1 + z / 2): p is the
// polynomial of degree 9 with the least relative error for 0 <= z <= 10.
[[gnu::always_inline]] inline Floats normal_integral(Floats x) {
  const Floats size = x < 0.0f ? -x : x;
  const Floats t = 1.0f / (1.0f + size * 0.35355339f);
  Floats p = all(0.012283307037538101f);
  p = p * t + -0.12325181686519265f;
  p = p * t + 0.4289221816916842f;
  p = p * t + -0.6700149025145972f;
  p = p * t + 0.421268593375399f;
  p = p * t + -0.09831491952650884f;
  p = p * t + 0.22554102893267797f;
  p = p * t + 0.23864498828373257f;
  p = p * t + 0.2828570201795395f;
  p = p * t + 0.28206449974087155f;
  const Floats tail = 0.5f * exponential_of_negative(size * size * -0.5f) * t * p;
  return x < 0.0f ? tail : 1.0f - tail;
}

// By its series near 0, where the difference would lose digits.
Floats hyperbolic_tangent(Floats x) {
  const Floats y = x * x, p = y * (y * (y * (62.0f / 2835) - 17.0f / 315) + 2.0f / 15) - 1.0f / 3;
  return y < 0.0625f ? x + x * y * p : 2.0f * sigmoid(2.0f * x) - 1.0f;
}

void activate(heddle_activation kind, const float* x, float* out, std::int64_t count) {
  // The tanh form of GELU is x sigmoid(2 u), because (1 + tanh u) / 2 = sigmoid(2 u).
  constexpr float kTwiceSqrtTwoOverPi = 1.5957691f;
  switch (kind) {
    case HEDDLE_ACT_RELU:
      return each(x, nullptr, nullptr, out, count,
                  [](Floats v, Floats, Floats) { return v < 0.0f ? Floats{} : v; });
    case HEDDLE_ACT_SILU:
      return each(x, nullptr, nullptr, out, count,
                  [](Floats v, Floats, Floats) { return v * sigmoid(v); });
    case HEDDLE_ACT_GELU:
      return each(x, nullptr, nullptr, out, count,
                  [](Floats v, Floats, Floats) { return v * normal_integral(v); });
    case HEDDLE_ACT_GELU_TANH:
      return each(x, nullptr, nullptr, out, count, [](Floats v, Floats, Floats) {
        return v * sigmoid(kTwiceSqrtTwoOverPi * (v + 0.044715f * v * v * v));
      });
    case HEDDLE_ACT_QUICK_GELU:
      return each(x, nullptr, nullptr, out, count,
                  [](Floats v, Floats, Floats) { return v * sigmoid(1.702f * v); });
    case HEDDLE_ACT_TANH:
      return each(x, nullptr, nullptr, out, count,
                  [](Floats v, Floats, Floats) { return hyperbolic_tangent(v); });
    default:
      if (out != x) std::memmove(out, x, static_cast<std::size_t>(count) * sizeof(float));
  }
}

// ---- types ----

Floats widen_bf16(const std::uint16_t* from) {
  const Words bits = __builtin_convertvector(load<Halves>(from), Words) << 16;
  return load<Floats>(&bits);
}

void narrow_bf16(Floats value, std::uint16_t* to) {
  const Words bits = load<Words>(&value);
  const Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Words quiet_nan = (bits >> 16) | 0x40u;
  const Words chosen = (bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded;
  store(to, __builtin_convertvector(chosen, Halves));
}

#if HEDDLE_VECTOR_WIDTH == 16
Floats widen_f16(const std::uint16_t* from) { return (Floats)_mm512_cvtph_ps(load<__m256i>(from)); }
void narrow_f16(Floats value, std::uint16_t* to) {
  store(to, _mm512_cvtps_ph((__m512)value, _MM_FROUND_TO_NEAREST_INT));
}
#elif HEDDLE_VECTOR_WIDTH == 8
Floats widen_f16(const std::uint16_t* from) { return (Floats)_mm256_cvtph_ps(load<__m128i>(from)); }
void narrow_f16(Floats value, std::uint16_t* to) {
  store(to, _mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT));
}
#else
// As in elements.h, a vector at a time.
Floats widen_f16(const std::uint16_t* from) {
  const Words bits = __builtin_convertvector(load<Halves>(from), Words);
  const Words sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  const Words shifted = magnitude << 13;
  const Floats scaled = load<Floats>(&shifted) * 0x1p112f;
  const Words value =
      sign | (magnitude >= 0x7c00u ? (0x7f800000u | shifted) : load<Words>(&scaled));
  return load<Floats>(&value);
}
void narrow_f16(Floats value, std::uint16_t* to) {
  const Words bits = load<Words>(&value);
  const Words sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  const Words normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const Floats lifted = load<Floats>(&magnitude) + 0.5f;
  const Words small = load<Words>(&lifted) - 0x3f000000u;
  Words half = magnitude < 0x38800000u ? small : normal;
  half = magnitude >= 0x477ff000u ? (Words{} + 0x7c00u) : half;
  half = magnitude > 0x7f800000u ? (0x7e00u | ((magnitude >> 13) & 0x3ffu)) : half;
  store(to, __builtin_convertvector(sign | half, Halves));
}
#endif

}  // namespace

}  // namespace heddle::cpu

#include "vector_blocks.h"
#include "vector_products.h"

namespace heddle::cpu {

namespace {

// ---- rows of other types ----

template <class Convert>
void widen_halves(const void* from, std::int64_t count, float* to, Convert convert) {
  const auto* source = static_cast<const std::uint16_t*>(from);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store(to + i, convert(source + i));
  if (i == count) return;
  std::uint16_t rest[kWidth] = {};
  std::memcpy(rest, source + i, static_cast<std::size_t>(count - i) * sizeof *rest);
  const Floats value = convert(rest);
  std::memcpy(to + i, &value, static_cast<std::size_t>(count - i) * sizeof(float));
}

template <class Convert>
void narrow_halves(const float* from, std::int64_t count, void* to, Convert convert) {
  auto* target = static_cast<std::uint16_t*>(to);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) convert(load<Floats>(from + i), target + i);
  if (i == count) return;
  float rest[kWidth] = {};
  std::uint16_t result[kWidth];
  std::memcpy(rest, from + i, static_cast<std::size_t>(count - i) * sizeof *rest);
  convert(load<Floats>(rest), result);
  std::memcpy(target + i, result, static_cast<std::size_t>(count - i) * sizeof *result);
}

void widen(heddle_dtype dtype, const void* from, std::int64_t count, float* to) {
  if (dtype == HEDDLE_F32)
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
  else if (dtype == HEDDLE_F16)
    widen_halves(from, count, to, widen_f16);
  else if (dtype == HEDDLE_BF16)
    widen_halves(from, count, to, widen_bf16);
  else
    widen_small(dtype, from, count, to);
}

void widen_pairs(const void* from, std::int64_t k, float* to) {
  const PairedPanel panel{static_cast<const std::uint16_t*>(from)};
  for (std::int64_t i = 0; i < k; i += 2, to += 2 * kPanelColumns)
    for (int column = 0; column < kPanelColumns; column += kWidth) {
      store(to + column, panel(i, column));
      store(to + kPanelColumns + column, panel(i + 1, column));
    }
}

void narrow(heddle_dtype dtype, const float* from, std::int64_t count, void* to) {
  if (dtype == HEDDLE_F32)
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
  else if (dtype == HEDDLE_F16)
    narrow_halves(from, count, to, narrow_f16);
  else
    narrow_halves(from, count, to, narrow_bf16);
}

// ---- elementwise ----

void add(const float* a, const float* b, float* out, std::int64_t count) {
  each(a, b, nullptr, out, count, [](Floats x, Floats y, Floats) { return x + y; });
}

void multiply_each(const float* a, const float* b, float* out, std::int64_t count) {
  each(a, b, nullptr, out, count, [](Floats x, Floats y, Floats) { return x * y; });
}

void scale(const float* x, float factor, float* out, std::int64_t count) {
  each(x, nullptr, nullptr, out, count, [factor](Floats v, Floats, Floats) { return v * factor; });
}

// The product is rounded before it is added: it passes through memory that the compiler cannot see
// into.
void add_scaled(const float* x, float factor, float* sum, std::int64_t count) {
  each(x, sum, nullptr, sum, count, [factor](Floats v, Floats s, Floats) {
    Floats term = v * factor;
    __asm__("" : "+m"(term));
    return s + term;
  });
}

void scale_clamp(const float* x, const float attrs[4], float* out, std::int64_t count) {
  const float factor = attrs[0], shift = attrs[1], low = attrs[2], high = attrs[3];
  each(x, nullptr, nullptr, out, count, [=](Floats v, Floats, Floats) {
    const Floats y = v * factor + shift;
    const Floats raised = y < low ? all(low) : y;
    return raised > high ? all(high) : raised;
  });
}

void gated_add(const float* x, const float* gate, const float* y, float* out, std::int64_t count) {
  each(x, gate, y, out, count, [](Floats a, Floats g, Floats b) { return a + g * b; });
}

// ---- rows ----

// Adds value(x) over the elements: in f32 within a stretch that cannot lose much, then in double.
template <class Value>
double sum_of(const float* x, std::int64_t count, Value value) {
  constexpr std::int64_t kStretch = 32 * kWidth;
  double total = 0;
  for (std::int64_t begin = 0; begin < count; begin += kStretch) {
    const std::int64_t end = count - begin < kStretch ? count : begin + kStretch;
    Floats even{}, odd{};
    std::int64_t i = begin;
    for (; i + 2 * kWidth <= end; i += 2 * kWidth) {
      even += value(load<Floats>(x + i));
      odd += value(load<Floats>(x + i + kWidth));
    }
    const Floats both = even + odd;
    for (int lane = 0; lane < kWidth; ++lane) total += both[lane];
    for (; i < end; ++i) total += value(all(x[i]))[0];
  }
  return total;
}

double sum(const float* x, std::int64_t count) {
  return sum_of(x, count, [](Floats v) { return v; });
}

double sum_of_squares(const float* x, float mean, std::int64_t count) {
  return sum_of(x, count, [mean](Floats v) { return (v - mean) * (v - mean); });
}

void normalise(const float* x, float mean, float factor, const float* weight, const float* bias,
               float* out, std::int64_t count) {
  if (weight != nullptr)
    each(x, weight, bias, out, count,
         [=](Floats v, Floats w, Floats b) { return (v - mean) * factor * w + b; });
  else
    each(x, bias, nullptr, out, count,
         [=](Floats v, Floats b, Floats) { return (v - mean) * factor + b; });
}

void normalise_each(const float* x, const float* mean, const float* factor, const float* bias,
                    float* out, std::int64_t count) {
  // Two steps of three operands; the difference between rests in cache.
  each(x, mean, nullptr, out, count, [](Floats v, Floats m, Floats) { return v - m; });
  each(out, factor, bias, out, count, [](Floats v, Floats f, Floats b) { return v * f + b; });
}

void add_square_of_difference(const float* x, const float* mean, float* total, std::int64_t count) {
  each(x, mean, total, total, count,
       [](Floats v, Floats m, Floats t) { return t + (v - m) * (v - m); });
}

void modulate(const float* x, float mean, float factor, const float* more, const float* shift,
              float* out, std::int64_t count) {
  each(x, more, shift, out, count,
       [=](Floats v, Floats m, Floats s) { return (v - mean) * factor * (1.0f + m) + s; });
}

Floats swap_pairs(Floats x) {
#if HEDDLE_VECTOR_WIDTH == 16
  return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
#elif HEDDLE_VECTOR_WIDTH == 8
  return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
#else
  return __builtin_shufflevector(x, x, 1, 0, 3, 2);
#endif
}

void rotate(const float* x, const float* cosine, const float* sine, float* out,
            std::int64_t count) {
  each(x, cosine, sine, out, count,
       [](Floats v, Floats c, Floats s) { return v * c + swap_pairs(v) * s; });
}

void turn(float* a, float* b, const float* cosine, const float* sine, std::int64_t count) {
  const auto turn_some = [](float* left, float* right, const float* c, const float* s) {
    const auto x = load<Floats>(left), y = load<Floats>(right), cosines = load<Floats>(c),
               sines = load<Floats>(s);
    store(left, x * cosines - y * sines);
    store(right, x * sines + y * cosines);
  };
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) turn_some(a + i, b + i, cosine + i, sine + i);
  if (i == count) return;
  const auto rest = static_cast<std::size_t>(count - i) * sizeof(float);
  float end[4][kWidth] = {};
  std::memcpy(end[0], a + i, rest);
  std::memcpy(end[1], b + i, rest);
  std::memcpy(end[2], cosine + i, rest);
  std::memcpy(end[3], sine + i, rest);
  turn_some(end[0], end[1], end[2], end[3]);
  std::memcpy(a + i, end[0], rest);
  std::memcpy(b + i, end[1], rest);
}

// ---- attention ----

void soften(float* scores, std::int64_t keys, float factor, float* largest, float* total,
            float* rescale) {
  const float minus_infinity = -__builtin_inff();
  for (std::int64_t column = 0; column < kPanelColumns; column += kWidth) {
    const Floats before = load<Floats>(largest + column);
    Floats most = all(minus_infinity);
    for (std::int64_t j = 0; j < keys; ++j) {
      const Floats score = load<Floats>(scores + j * kPanelColumns + column) * factor;
      most = score > most ? score : most;
    }
    most = most > before ? most : before;
    // A query that has seen nothing yet: subtracting 0 turns its -infinity into 0, not into NaN.
    const Floats base = most == minus_infinity ? Floats{} : most;
    const Floats shrink = exponential_of_negative(before - base);
    Floats sum = load<Floats>(total + column) * shrink;
    for (std::int64_t j = 0; j < keys; ++j) {
      float* at = scores + j * kPanelColumns + column;
      const Floats weight = exponential_of_negative(load<Floats>(at) * factor - base);
      store(at, weight);
      sum += weight;
    }
    store(largest + column, most);
    store(total + column, sum);
    store(rescale + column, shrink);
  }
}

void scale_columns(float* rows, std::int64_t count, const float* factor) {
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t column = 0; column < kPanelColumns; column += kWidth) {
      float* at = rows + i * kPanelColumns + column;
      store(at, load<Floats>(at) * load<Floats>(factor + column));
    }
}

// ---- whole numbers ----

// Of neighbours in pairs.
Ints sums_of_products(const std::int16_t* a, const std::int16_t* b) {
#if HEDDLE_VECTOR_WIDTH == 16
  return (Ints)_mm512_madd_epi16(load<__m512i>(a), load<__m512i>(b));
#elif HEDDLE_VECTOR_WIDTH == 8
  return (Ints)_mm256_madd_epi16(load<__m256i>(a), load<__m256i>(b));
#else
  Ints sums;
  for (int i = 0; i < kWidth; ++i)
    sums[i] = std::int32_t{a[2 * i]} * b[2 * i] + std::int32_t{a[2 * i + 1]} * b[2 * i + 1];
  return sums;
#endif
}

std::int32_t multiply_whole(const std::int16_t* a, const std::int16_t* b, std::int64_t count) {
  Ints sums{};
  for (std::int64_t i = 0; i < count; i += 2 * kWidth) sums += sums_of_products(a + i, b + i);
  std::int32_t sum = 0;
  for (int i = 0; i < kWidth; ++i) sum += sums[i];
  return sum;
}

void widen_whole(const std::int8_t* from, std::int64_t count, std::int16_t* to) {
  typedef std::int8_t Bytes __attribute__((vector_size(2 * kWidth)));
  typedef std::int16_t Shorts __attribute__((vector_size(4 * kWidth)));
  for (std::int64_t i = 0; i < count; i += 2 * kWidth)
    store(to + i, __builtin_convertvector(load<Bytes>(from + i), Shorts));
}

constexpr VectorKernels make_table(const char* isa) {
  return {.isa = isa,
          .multiply = multiply,
          .multiply_few = multiply_few,
          .multiply_few_pairs = multiply_few_pairs,
          .multiply_taps = multiply_taps,
          .multiply_whole = multiply_whole,
          .widen_whole = widen_whole,
          .pack = pack<kBlockRows>,
          .pack_few = pack<kFewRows>,
          .pack_panel = pack_panel,
          .widen = widen,
          .widen_pairs = widen_pairs,
          .narrow = narrow,
          .add = add,
          .multiply_each = multiply_each,
          .add_scaled = add_scaled,
          .scale = scale,
          .scale_clamp = scale_clamp,
          .gated_add = gated_add,
          .activate = activate,
          .sum = sum,
          .sum_of_squares = sum_of_squares,
          .normalise = normalise,
          .normalise_each = normalise_each,
          .add_square_of_difference = add_square_of_difference,
          .modulate = modulate,
          .turn = turn,
          .rotate = rotate,
          .soften = soften,
          .scale_columns = scale_columns};
}

}  // namespace

}  // namespace heddle::cpu
