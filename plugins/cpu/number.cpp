#include "number.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "elements.h"

namespace heddle::cpu {

namespace {

static_assert(std::numeric_limits<long double>::digits >= 64,
              "conversions of 64-bit integers would round twice");

// A float of up to 16 bits: sign, exponent with bias 2^(exponent bits - 1) - 1, mantissa.
struct SmallFloat {
  int exponent_bits, mantissa_bits;
  bool has_infinity;  // without: the largest exponent holds numbers, and all ones is NaN
};
constexpr SmallFloat kF16{5, 10, true};
constexpr SmallFloat kBF16{8, 7, true};
constexpr SmallFloat kE4M3{4, 3, false};
constexpr SmallFloat kE5M2{5, 2, true};

long double decode(SmallFloat form, unsigned bits) {
  const unsigned mantissa = bits & ((1u << form.mantissa_bits) - 1);
  const unsigned top = (1u << form.exponent_bits) - 1;
  const unsigned exponent = (bits >> form.mantissa_bits) & top;
  const bool negative = (bits >> (form.mantissa_bits + form.exponent_bits)) & 1u;
  const int bias = static_cast<int>(top >> 1);
  long double value = 0;
  if (form.has_infinity && exponent == top)
    value = mantissa == 0 ? std::numeric_limits<long double>::infinity()
                          : std::numeric_limits<long double>::quiet_NaN();
  else if (!form.has_infinity && exponent == top && mantissa == (1u << form.mantissa_bits) - 1)
    value = std::numeric_limits<long double>::quiet_NaN();
  else if (exponent == 0)
    value = std::ldexp(static_cast<long double>(mantissa), 1 - bias - form.mantissa_bits);
  else
    value = std::ldexp(static_cast<long double>(mantissa + (1u << form.mantissa_bits)),
                       static_cast<int>(exponent) - bias - form.mantissa_bits);
  return negative ? -value : value;
}

unsigned encode(SmallFloat form, long double value) {
  const unsigned top = (1u << form.exponent_bits) - 1;
  const unsigned ones = (1u << form.mantissa_bits) - 1;
  const unsigned sign = std::signbit(value) ? 1u << (form.mantissa_bits + form.exponent_bits) : 0u;
  const unsigned not_a_number =
      (top << form.mantissa_bits) | (form.has_infinity ? 1u << (form.mantissa_bits - 1) : ones);
  const unsigned overflow = form.has_infinity ? top << form.mantissa_bits : not_a_number;
  if (std::isnan(value)) return sign | not_a_number;
  value = std::fabs(value);
  if (std::isinf(value)) return sign | overflow;
  if (value == 0) return sign;
  const int bias = static_cast<int>(top >> 1);
  int exponent = std::ilogb(value);
  if (exponent < 1 - bias)
    exponent = 1 - bias;  // subnormal: the step stays that of the smallest normal
  // The mantissa with its leading bit; rounding up may carry into the next exponent, which the sum
  // below gets right.
  const auto steps =
      static_cast<long long>(std::nearbyint(std::ldexp(value, form.mantissa_bits - exponent)));
  const long long bits =
      (static_cast<long long>(exponent + bias - 1) << form.mantissa_bits) + steps;
  const unsigned largest =
      form.has_infinity ? (top << form.mantissa_bits) - 1 : (top << form.mantissa_bits) + ones - 1;
  return sign | (bits > static_cast<long long>(largest) ? overflow : static_cast<unsigned>(bits));
}

template <class T>
long double load_as(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<long double>(value);
}

template <class T>
void store_as(T value, void* to) {
  std::memcpy(to, &value, sizeof value);
}

template <class T>
void store_integer(long double value, void* to) {
  using Limits = std::numeric_limits<T>;
  T result = 0;
  if (std::isnan(value))
    result = 0;
  else if (value <= static_cast<long double>(Limits::min()))
    result = Limits::min();
  else if (value >= static_cast<long double>(Limits::max()))
    result = Limits::max();
  else
    result = static_cast<T>(value);
  store_as(result, to);
}

unsigned load_bits16(const void* from) {
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

}  // namespace

long double load_number(heddle_dtype dtype, const void* from) {
  switch (dtype) {
    case HEDDLE_F32:
      return load_as<float>(from);
    case HEDDLE_F64:
      return load_as<double>(from);
    case HEDDLE_F16:
      return decode(kF16, load_bits16(from));
    case HEDDLE_BF16:
      return decode(kBF16, load_bits16(from));
    case HEDDLE_F8_E4M3:
      return decode(kE4M3, *static_cast<const std::uint8_t*>(from));
    case HEDDLE_F8_E5M2:
      return decode(kE5M2, *static_cast<const std::uint8_t*>(from));
    case HEDDLE_I8:
      return load_as<std::int8_t>(from);
    case HEDDLE_I16:
      return load_as<std::int16_t>(from);
    case HEDDLE_I32:
      return load_as<std::int32_t>(from);
    case HEDDLE_I64:
      return load_as<std::int64_t>(from);
    case HEDDLE_U8:
      return load_as<std::uint8_t>(from);
    case HEDDLE_U16:
      return load_as<std::uint16_t>(from);
    case HEDDLE_U32:
      return load_as<std::uint32_t>(from);
    case HEDDLE_U64:
      return load_as<std::uint64_t>(from);
    default:
      return *static_cast<const std::uint8_t*>(from) != 0 ? 1 : 0;  // HEDDLE_BOOL8
  }
}

void store_number(heddle_dtype dtype, long double value, void* to) {
  switch (dtype) {
    case HEDDLE_F32:
      return store_as(static_cast<float>(value), to);
    case HEDDLE_F64:
      return store_as(static_cast<double>(value), to);
    case HEDDLE_F16:
      return store_as(static_cast<std::uint16_t>(encode(kF16, value)), to);
    case HEDDLE_BF16:
      return store_as(static_cast<std::uint16_t>(encode(kBF16, value)), to);
    case HEDDLE_F8_E4M3:
      return store_as(static_cast<std::uint8_t>(encode(kE4M3, value)), to);
    case HEDDLE_F8_E5M2:
      return store_as(static_cast<std::uint8_t>(encode(kE5M2, value)), to);
    case HEDDLE_I8:
      return store_integer<std::int8_t>(value, to);
    case HEDDLE_I16:
      return store_integer<std::int16_t>(value, to);
    case HEDDLE_I32:
      return store_integer<std::int32_t>(value, to);
    case HEDDLE_I64:
      return store_integer<std::int64_t>(value, to);
    case HEDDLE_U8:
      return store_integer<std::uint8_t>(value, to);
    case HEDDLE_U16:
      return store_integer<std::uint16_t>(value, to);
    case HEDDLE_U32:
      return store_integer<std::uint32_t>(value, to);
    case HEDDLE_U64:
      return store_integer<std::uint64_t>(value, to);
    default:
      return store_as(static_cast<std::uint8_t>(value != 0 ? 1 : 0),
                      to);  // HEDDLE_BOOL8; NaN is true
  }
}

}  // namespace heddle::cpu
