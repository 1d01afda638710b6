#include "engine/tensor/numbers.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t(bits) << 16); }

// Without a branch, so that loops over it become vector code: a subnormal's bits are an integer
// number of 2^-24.
float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t(bits & 0x8000u) << 16;
  const std::uint32_t rest = bits & 0x7fffu;
  const std::uint32_t normal = (rest << 13) + (rest >= 0x7c00u ? 0x70000000u : 0x38000000u);
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(float(std::int32_t(rest)) * 0x1p-24f);
  return std::bit_cast<float>(sign | (rest < 0x0400u ? subnormal : normal));
}

// An 8-bit float with this many bits of mantissa; e4m3 has no infinities and one NaN.
float from_f8(std::uint8_t bits, int mantissa_bits) {
  const int exponent_bits = 7 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits & 0x7f) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  const bool e4m3 = mantissa_bits == 3;
  if (e4m3 ? (bits & 0x7f) == 0x7f : exponent == 31 && mantissa != 0)
    return std::numeric_limits<float>::quiet_NaN();
  if (!e4m3 && exponent == 31) return sign * std::numeric_limits<float>::infinity();
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(float(whole), (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
}

template <class Bits, class Convert, class To>
void each(std::span<const std::byte> src, To* dst, Convert&& convert) {
  const std::size_t count = src.size() / sizeof(Bits);
  for (std::size_t i = 0; i < count; ++i)
    dst[i] = To(convert(load<Bits>(src.data() + i * sizeof(Bits))));
}

template <class To>
void convert_floats(DType dtype, std::span<const std::byte> src, To* dst) {
  const auto same = [](auto x) { return x; };
  switch (dtype) {
    case DType::f32:
      return each<float>(src, dst, same);
    case DType::f64:
      return each<double>(src, dst, same);
    case DType::bf16:
      return each<std::uint16_t>(src, dst, [](std::uint16_t b) { return from_bf16(b); });
    case DType::f16:
      return each<std::uint16_t>(src, dst, [](std::uint16_t b) { return from_f16(b); });
    case DType::f8_e4m3:
      return each<std::uint8_t>(src, dst, [](std::uint8_t b) { return from_f8(b, 3); });
    case DType::f8_e5m2:
      return each<std::uint8_t>(src, dst, [](std::uint8_t b) { return from_f8(b, 2); });
    default:
      throw Error(Code::invalid_argument, cat("elements of the type ", dtype_name(dtype),
                                              " are no floating-point numbers"));
  }
}

std::uint16_t to_bf16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return std::uint16_t((bits >> 16) | 0x40u);
  return std::uint16_t((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

std::uint16_t to_f16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  const auto sign = std::uint16_t(bits >> 16 & 0x8000u);
  const std::uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return std::uint16_t(sign | 0x7e00u);
  if (size >= 0x477ff000u) return std::uint16_t(sign | 0x7c00u);  // 65520 and more
  if (size < 0x38800000u)  // below 2^-14: whole numbers of 2^-24
    return std::uint16_t(sign |
                         std::uint16_t(std::nearbyint(std::bit_cast<float>(size) * 0x1p24f)));
  const std::uint32_t rounded = size + 0xfffu + ((size >> 13) & 1);
  return std::uint16_t(sign | std::uint16_t((rounded - 0x38000000u) >> 13));
}

}  // namespace

void from_floats(DType dtype, std::span<const float> src, std::byte* dst) {
  if (dtype == DType::f32) {
    std::memcpy(dst, src.data(), src.size_bytes());
    return;
  }
  if (dtype != DType::bf16 && dtype != DType::f16)
    throw Error(Code::unsupported, cat("numbers are not rounded to ", dtype_name(dtype)));
  for (std::size_t i = 0; i < src.size(); ++i) {
    const std::uint16_t bits = dtype == DType::bf16 ? to_bf16(src[i]) : to_f16(src[i]);
    std::memcpy(dst + i * sizeof bits, &bits, sizeof bits);
  }
}

void to_floats(DType dtype, std::span<const std::byte> src, float* dst) {
  if (dtype == DType::f32)
    std::memcpy(dst, src.data(), src.size());
  else
    convert_floats(dtype, src, dst);
}

std::vector<double> to_doubles(DType dtype, std::span<const std::byte> src) {
  std::vector<double> values(src.size() / dtype_size(dtype));
  double* const dst = values.data();
  const auto same = [](auto x) { return x; };
  switch (dtype) {
    case DType::i8:
      each<std::int8_t>(src, dst, same);
      break;
    case DType::bool8:
    case DType::u8:
      each<std::uint8_t>(src, dst, same);
      break;
    case DType::i16:
      each<std::int16_t>(src, dst, same);
      break;
    case DType::u16:
      each<std::uint16_t>(src, dst, same);
      break;
    case DType::i32:
      each<std::int32_t>(src, dst, same);
      break;
    case DType::u32:
      each<std::uint32_t>(src, dst, same);
      break;
    case DType::i64:
      each<std::int64_t>(src, dst, same);
      break;
    case DType::u64:
      each<std::uint64_t>(src, dst, same);
      break;
    default:
      convert_floats(dtype, src, dst);
  }
  return values;
}

}  // namespace heddle::engine
