// Vectors of the instruction set that vector_body.h is compiled for, and how they walk over arrays.
// Uses the vector types of GCC and clang. Part of vector_body.h, and included by it alone.
#pragma once

#include <cstdint>
#include <cstring>

namespace heddle::cpu {

namespace {

constexpr int kWidth = HEDDLE_VECTOR_WIDTH;
// The sums of a block, a row of b and one number of a fit into the registers: 32 of them with
// AVX-512, else 16.
constexpr int kRows = kWidth == 16 ? 12 : kWidth == 8 ? 6 : 4;
constexpr int kVectors = 2;

typedef float Floats __attribute__((vector_size(4 * kWidth)));
typedef std::int32_t Ints __attribute__((vector_size(4 * kWidth)));
typedef std::uint32_t Words __attribute__((vector_size(4 * kWidth)));
typedef std::uint16_t Halves __attribute__((vector_size(2 * kWidth)));
typedef float Four __attribute__((vector_size(16)));

template <class Vector>
Vector load(const void* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class Vector>
void store(void* to, Vector value) {
  std::memcpy(to, &value, sizeof value);
}

// Subtracting 0 changes nothing, and compilers know: this is one broadcast.
Floats all(float value) { return value - Floats{}; }

// Calls body(i) for whole vectors, and for the rest with copies of the operands in padded buffers:
// the last elements go through the same instructions as all others.
template <class Body>
void each(const float* a, const float* b, const float* c, float* out, std::int64_t count,
          Body body) {
  const Floats zero{};
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth)
    store(out + i, body(load<Floats>(a + i), b != nullptr ? load<Floats>(b + i) : zero,
                        c != nullptr ? load<Floats>(c + i) : zero));
  if (i == count) return;
  const auto rest = static_cast<std::size_t>(count - i) * sizeof(float);
  float end[4][kWidth] = {};
  std::memcpy(end[0], a + i, rest);
  if (b != nullptr) std::memcpy(end[1], b + i, rest);
  if (c != nullptr) std::memcpy(end[2], c + i, rest);
  store(end[3], body(load<Floats>(end[0]), load<Floats>(end[1]), load<Floats>(end[2])));
  std::memcpy(out + i, end[3], rest);
}

}  // namespace

}  // namespace heddle::cpu
