#include "normal_transform.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#if defined(__x86_64__)
#include <immintrin.h>
#define HEDDLE_AVX2 __attribute__((target("avx2,fma")))
#endif

namespace heddle::samplers {
namespace {

// Whether a compiler fuses a product with a later sum (-ffp-contract, which GCC has on by default
// and applies to intrinsics, too) cannot change a bit here: every product that is added to
// something is an explicit fma or is itself the addend of one; all other products are not added to
// anything but zero. Keep it so when changing a line.
using namespace contracted;

struct SinCos {
  float sin, cos;
};

float log_scalar(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  float exponent = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 127) + 1.0f;
  float m = std::bit_cast<float>((bits & 0x007FFFFFu) | 0x3F000000u);
  const bool low = m < kSqrtHalf;
  const float doubled = low ? m : 0.0f;
  m -= 1.0f;
  if (low) exponent -= 1.0f;
  m += doubled;
  const float z = m * m;
  float y = kLog[0];
  for (int k = 1; k < 9; ++k) y = std::fma(y, m, kLog[k]);
  y = y * m;
  y = std::fma(y, z, exponent * kLogQ1);
  y = std::fma(-z, 0.5f, y);
  return std::fma(exponent, kLogQ2, m + y);
}

SinCos sincos_scalar(float angle) {
  const std::int32_t octant = (static_cast<std::int32_t>(angle * kFourOverPi) + 1) & ~1;
  const auto y = static_cast<float>(octant);
  float x = angle;
  for (const float part : kReduce) x = std::fma(y, part, x);
  const float z = x * x;
  float c = std::fma(kCos[0], z, kCos[1]);
  c = std::fma(c, z, kCos[2]);
  c = c * z;
  c = std::fma(c, z, -(z * 0.5f)) + 1.0f;
  float s = std::fma(kSin[0], z, kSin[1]);
  s = std::fma(s, z, kSin[2]);
  s = s * z;
  s = std::fma(s, x, x);
  SinCos result = (octant & 2) == 0 ? SinCos{s, c} : SinCos{c, s};
  if ((octant & 4) != 0) result.sin = -result.sin;
  if (((octant - 2) & 4) == 0) result.cos = -result.cos;
  return result;
}

}  // namespace

void transform_contracted_scalar(std::span<float> groups) {
  for (std::size_t base = 0; base < groups.size(); base += kNormalGroup) {
    for (std::size_t j = base; j < base + 8; ++j) {
      const float radius = std::sqrt(-2.0f * log_scalar(1.0f - groups[j]));
      const SinCos direction = sincos_scalar(kTwoPi * groups[j + 8]);
      // The sum with the mean, 0, turns -0 into 0.
      groups[j] = radius * direction.cos + 0.0f;
      groups[j + 8] = radius * direction.sin + 0.0f;
    }
  }
}

void transform_library(std::span<float> groups) {
  for (std::size_t base = 0; base < groups.size(); base += kNormalGroup) {
    for (std::size_t j = base; j < base + 8; ++j) {
      const float radius = std::sqrt(-2.0f * std::log(1.0f - groups[j]));
      const auto angle = static_cast<float>(2.0 * std::numbers::pi * groups[j + 8]);
      groups[j] = radius * std::cos(angle) + 0.0f;
      groups[j + 8] = radius * std::sin(angle) + 0.0f;
    }
  }
}

#if defined(__x86_64__)
namespace {

HEDDLE_AVX2 inline __m256 log_avx2(__m256 x) {
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i biased = _mm256_srli_epi32(bits, 23);
  __m256 exponent = _mm256_cvtepi32_ps(_mm256_sub_epi32(biased, _mm256_set1_epi32(127)));
  exponent = _mm256_add_ps(exponent, one);
  const __m256i fraction = _mm256_and_si256(bits, _mm256_set1_epi32(0x007FFFFF));
  __m256 m = _mm256_castsi256_ps(_mm256_or_si256(fraction, _mm256_set1_epi32(0x3F000000)));
  const __m256 low = _mm256_cmp_ps(m, _mm256_set1_ps(kSqrtHalf), _CMP_LT_OS);
  const __m256 doubled = _mm256_and_ps(m, low);
  m = _mm256_sub_ps(m, one);
  exponent = _mm256_sub_ps(exponent, _mm256_and_ps(one, low));
  m = _mm256_add_ps(m, doubled);
  const __m256 z = _mm256_mul_ps(m, m);
  __m256 y = _mm256_set1_ps(kLog[0]);
  for (int k = 1; k < 9; ++k) y = _mm256_fmadd_ps(y, m, _mm256_set1_ps(kLog[k]));
  y = _mm256_mul_ps(y, m);
  y = _mm256_fmadd_ps(y, z, _mm256_mul_ps(exponent, _mm256_set1_ps(kLogQ1)));
  y = _mm256_fnmadd_ps(z, _mm256_set1_ps(0.5f), y);
  return _mm256_fmadd_ps(exponent, _mm256_set1_ps(kLogQ2), _mm256_add_ps(m, y));
}

struct SinCos8 {
  __m256 sin, cos;
};

HEDDLE_AVX2 inline SinCos8 sincos_avx2(__m256 angle) {
  const __m256i two = _mm256_set1_epi32(2);
  const __m256i four = _mm256_set1_epi32(4);
  __m256i octant = _mm256_cvttps_epi32(_mm256_mul_ps(angle, _mm256_set1_ps(kFourOverPi)));
  octant = _mm256_add_epi32(octant, _mm256_set1_epi32(1));
  octant = _mm256_and_si256(octant, _mm256_set1_epi32(~1));
  const __m256 y = _mm256_cvtepi32_ps(octant);
  __m256 x = angle;
  for (const float part : kReduce) x = _mm256_fmadd_ps(y, _mm256_set1_ps(part), x);
  const __m256 z = _mm256_mul_ps(x, x);
  __m256 c = _mm256_fmadd_ps(_mm256_set1_ps(kCos[0]), z, _mm256_set1_ps(kCos[1]));
  c = _mm256_fmadd_ps(c, z, _mm256_set1_ps(kCos[2]));
  c = _mm256_mul_ps(c, z);
  c = _mm256_fmsub_ps(c, z, _mm256_mul_ps(z, _mm256_set1_ps(0.5f)));
  c = _mm256_add_ps(c, _mm256_set1_ps(1.0f));
  __m256 s = _mm256_fmadd_ps(_mm256_set1_ps(kSin[0]), z, _mm256_set1_ps(kSin[1]));
  s = _mm256_fmadd_ps(s, z, _mm256_set1_ps(kSin[2]));
  s = _mm256_mul_ps(s, z);
  s = _mm256_fmadd_ps(s, x, x);
  const __m256i straight =
      _mm256_cmpeq_epi32(_mm256_and_si256(octant, two), _mm256_setzero_si256());
  const __m256 keep = _mm256_castsi256_ps(straight);
  // Bit 2 of the octant, moved to the sign bit.
  const __m256i sin_sign = _mm256_slli_epi32(_mm256_and_si256(octant, four), 29);
  const __m256i shifted = _mm256_sub_epi32(octant, two);
  const __m256i cos_sign = _mm256_slli_epi32(_mm256_andnot_si256(shifted, four), 29);
  return {_mm256_xor_ps(_mm256_blendv_ps(c, s, keep), _mm256_castsi256_ps(sin_sign)),
          _mm256_xor_ps(_mm256_blendv_ps(s, c, keep), _mm256_castsi256_ps(cos_sign))};
}

}  // namespace

HEDDLE_AVX2 void transform_contracted_avx2(std::span<float> groups) {
  const __m256 zero = _mm256_setzero_ps();
  for (float* group = groups.data(); group != groups.data() + groups.size();
       group += kNormalGroup) {
    const __m256 u1 = _mm256_sub_ps(_mm256_set1_ps(1.0f), _mm256_loadu_ps(group));
    const __m256 angle = _mm256_mul_ps(_mm256_set1_ps(kTwoPi), _mm256_loadu_ps(group + 8));
    const __m256 radius = _mm256_sqrt_ps(_mm256_mul_ps(_mm256_set1_ps(-2.0f), log_avx2(u1)));
    const SinCos8 direction = sincos_avx2(angle);
    _mm256_storeu_ps(group, _mm256_add_ps(_mm256_mul_ps(radius, direction.cos), zero));
    _mm256_storeu_ps(group + 8, _mm256_add_ps(_mm256_mul_ps(radius, direction.sin), zero));
  }
}
#else
void transform_contracted_avx2(std::span<float> groups) { transform_contracted_scalar(groups); }
#endif

}  // namespace heddle::samplers
