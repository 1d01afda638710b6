// Bytes and floats of 8 bits to f32, a vector at a time: what elements.h says, bit for bit. Part of
// vector_body.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "vector_types.h"

namespace heddle::cpu {

namespace {

typedef std::uint8_t Bytes __attribute__((vector_size(kWidth)));
typedef std::int8_t SignedBytes __attribute__((vector_size(kWidth)));

Ints widen_bytes(const std::uint8_t* from) {
  return __builtin_convertvector(load<Bytes>(from), Ints);
}
Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }

// A half by itself: a block has one or two of them.
float half_at(const std::uint8_t* from) {
  std::uint16_t halves[kWidth] = {};
  std::memcpy(halves, from, sizeof *halves);
  return widen_f16(halves)[0];
}

// ---- floats of 8 bits ----

// As a half: exponent and mantissa in the places of a half's are the number times 2^-8.
Floats widen_e4m3(const std::uint8_t* from) {
  const Ints bits = widen_bytes(from), magnitude = bits & 0x7f;
  const Halves half = __builtin_convertvector((bits & 0x80) << 8 | magnitude << 7, Halves);
  std::uint16_t halves[kWidth];
  store(halves, half);
  const Floats value = widen_f16(halves) * 256.0f;
  return magnitude == 0x7f ? all(__builtin_nanf("")) : value;
}

// The upper half of a half.
Floats widen_e5m2(const std::uint8_t* from) {
  std::uint16_t halves[kWidth];
  store(halves, __builtin_convertvector(widen_bytes(from) << 8, Halves));
  return widen_f16(halves);
}

template <class Convert>
void widen_f8(const void* from, std::int64_t count, float* to, Convert convert) {
  const auto* source = static_cast<const std::uint8_t*>(from);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store(to + i, convert(source + i));
  if (i == count) return;
  std::uint8_t rest[kWidth] = {};
  std::memcpy(rest, source + i, static_cast<std::size_t>(count - i));
  const Floats value = convert(rest);
  std::memcpy(to + i, &value, static_cast<std::size_t>(count - i) * sizeof(float));
}

}  // namespace

}  // namespace heddle::cpu
