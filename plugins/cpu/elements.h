// Element types: how each is read as f32 and written from f32, rounding once to nearest even. Rows
// of f32, f16 and bf16 are what kernels work on; number.h has the other types. Pure functions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "heddle/abi/value.h"

namespace heddle::cpu {

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
}

// Half precision by scaling: a half's exponent and mantissa, moved into a float, are the number
// times 2^-112.
inline float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const std::uint32_t special = 0x7f800000u | (magnitude << 13);  // infinity, NaN
  return std::bit_cast<float>(
      sign | (magnitude >= 0x7c00u ? special : std::bit_cast<std::uint32_t>(scaled)));
}

inline std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Normal: rebias the exponent (by 112) and round away the last 13 bits; a carry runs into the
  // exponent by itself.
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal: adding 0.5 lets the processor round at 2^-24, a half's smallest step.
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  std::uint32_t half = magnitude < 0x38800000u ? small : normal;  // below 2^-14
  if (magnitude >= 0x477ff000u) half = 0x7c00u;  // rounds to 65536 or more: infinity
  if (magnitude > 0x7f800000u) half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);  // NaN
  return static_cast<std::uint16_t>(sign | half);
}

// Floats of 8 bits. f8_e5m2 is the upper half of a half. f8_e4m3 has no infinities: all ones is
// NaN, and what is too large becomes that.
inline float from_e5m2(std::uint8_t bits) {
  return from_f16(static_cast<std::uint16_t>(bits << 8));
}
inline float from_e4m3(std::uint8_t bits) {
  const unsigned magnitude = bits & 0x7fu;
  if (magnitude == 0x7fu) return __builtin_nanf("");
  return from_f16(static_cast<std::uint16_t>((bits & 0x80u) << 8 | magnitude << 7)) * 256.0f;
}

inline std::uint8_t to_e4m3(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t normal =
      (magnitude - (120u << 23) + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20;
  // Subnormal: adding 2^14 lets the processor round at 2^-9, the smallest step.
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 16384.0f) - 0x46800000u;
  const std::uint32_t rounded = magnitude < 0x3c800000u ? small : normal;  // below 2^-6
  return static_cast<std::uint8_t>((bits >> 24 & 0x80u) | (rounded > 0x7fu ? 0x7fu : rounded));
}

inline std::uint8_t to_e5m2(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t normal =
      (magnitude - (112u << 23) + 0xfffffu + ((magnitude >> 21) & 1u)) >> 21;
  // Subnormal: adding 2^7 lets the processor round at 2^-16, the smallest step.
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 128.0f) - 0x43000000u;
  std::uint32_t rounded = magnitude < 0x38800000u ? small : normal;  // below 2^-14
  if (rounded > 0x7cu) rounded = 0x7cu;                              // infinity
  if (magnitude > 0x7f800000u) rounded = 0x7fu;                      // NaN
  return static_cast<std::uint8_t>((bits >> 24 & 0x80u) | rounded);
}

// Reads and writes count elements, stride elements apart (1: contiguous). REQUIRES: dtype is f32,
// f16, bf16 or an f8 type; to be read also a block format, contiguous and from the beginning of a
// block.
void load_row(heddle_dtype dtype, const void* from, std::int64_t count, std::int64_t stride,
              float* to);
void store_row(heddle_dtype dtype, const float* from, std::int64_t count, std::int64_t stride,
               void* to);

}  // namespace heddle::cpu
