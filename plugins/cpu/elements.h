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

// Reads and writes count elements, stride elements apart (1: contiguous). REQUIRES: dtype is f32,
// f16 or bf16.
void load_row(heddle_dtype dtype, const void* from, std::int64_t count, std::int64_t stride,
              float* to);
void store_row(heddle_dtype dtype, const float* from, std::int64_t count, std::int64_t stride,
               void* to);

}  // namespace heddle::cpu
