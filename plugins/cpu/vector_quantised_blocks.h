// The block formats of ComfyUI's quantised files to f32, a vector at a time: what blocks.cpp says,
// bit for bit. Part of vector_body.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "heddle/abi/value.h"
#include "vector_bytes.h"

namespace heddle::cpu {

namespace {

// ---- blocks of 256 with numbers of 8 bits ----

struct I8Scaled {
  static constexpr std::int64_t elements = 256, bytes = 260;
  static void read(const std::uint8_t* block, float* to) {
    numbers(block, to);
    const float scale = scale_of(block);
    for (int i = 0; i < 256; i += kWidth) store(to + i, load<Floats>(to + i) * scale);
  }
  static float scale_of(const std::uint8_t* block) {
    float scale = 0;
    std::memcpy(&scale, block, sizeof scale);
    return scale;
  }
  static void numbers(const std::uint8_t* block, float* to) {
    for (int i = 0; i < 256; i += kWidth)
      store(to + i, to_floats(__builtin_convertvector(load<SignedBytes>(block + 4 + i), Ints)));
  }
};

// The rotation is one of each base-4 digit of a number's place after another. Sums are of whole
// numbers, so that their order says nothing.
struct I8Rotated {
  static constexpr std::int64_t elements = 256, bytes = 260;
  static void read(const std::uint8_t* block, float* to) {
    I8Scaled::numbers(block, to);
    turn(to, I8Scaled::scale_of(block) / 16);
  }
  static void turn(float* to, float scale) {
    small_digit<1>(to);
    small_digit<4>(to);
    large_digit<16>(to);
    large_digit<64>(to);
    for (int i = 0; i < 256; i += kWidth) store(to + i, load<Floats>(to + i) * scale);
  }
  // Below a vector's width.
  template <int step>
  static void small_digit(float* x) {
    for (int first = 0; first < 256; first += 4 * step)
      for (int i = first; i < first + step; ++i) {
        const float a = x[i], b = x[i + step], c = x[i + 2 * step], d = x[i + 3 * step];
        const float all = (a + b) + (c + d);
        x[i] = all - 2 * d;
        x[i + step] = all - 2 * c;
        x[i + 2 * step] = all - 2 * b;
        x[i + 3 * step] = all - 2 * a;
      }
  }
  template <int step>
  static void large_digit(float* x) {
    static_assert(step % kWidth == 0);
    for (int first = 0; first < 256; first += 4 * step)
      for (int i = first; i < first + step; i += kWidth) {
        const Floats a = load<Floats>(x + i), b = load<Floats>(x + i + step),
                     c = load<Floats>(x + i + 2 * step), d = load<Floats>(x + i + 3 * step);
        const Floats all = (a + b) + (c + d);
        store(x + i, all - 2.0f * d);
        store(x + i + step, all - 2.0f * c);
        store(x + i + 2 * step, all - 2.0f * b);
        store(x + i + 3 * step, all - 2.0f * a);
      }
  }
};

// ---- blocks of 256 with numbers of 4 bits ----

// Numbers i, i + 1, ... of 32 in 16 bytes after another. REQUIRES: whole vectors.
Ints nibbles(const std::uint8_t* bytes, int i) {
  const Ints both = widen_bytes(bytes + i / 32 * 16 + i % 16);
  return i % 32 < 16 ? both & 15 : both >> 4;
}

// Entries of a table of 16.
Floats look_up(const float* table, Ints places) {
  Floats values;
  for (int lane = 0; lane < kWidth; ++lane) values[lane] = table[places[lane]];
  return values;
}

// The scales of 16 groups, as f32.
struct GroupScales {
  explicit GroupScales(const std::uint8_t* from) {
    for (int i = 0; i < 16; i += kWidth) store(of + i, widen_e4m3(from + i));
  }
  float of[16];
};

struct Nvfp4 {
  static constexpr std::int64_t elements = 256, bytes = 148;
  static void read(const std::uint8_t* block, float* to) {
    const float scale = I8Scaled::scale_of(block);
    const GroupScales scales(block + 4);
    for (int i = 0; i < 256; i += kWidth)
      store(to + i,
            to_floats(twice(nibbles(block + 20, i))) * (0.5f * (scale * scales.of[i / 16])));
  }
  // Two times the number: a sign, two bits of exponent, one of mantissa.
  static Ints twice(Ints code) {
    const Ints exponent = code >> 1 & 3, is_normal = exponent != 0;
    const Ints magnitude = ((code & 1) | (is_normal & 2)) << (exponent - 1 - ~is_normal);
    return code > 7 ? -magnitude : magnitude;
  }
};

struct I4Rotated {
  static constexpr std::int64_t elements = 256, bytes = 132;
  static void read(const std::uint8_t* block, float* to) {
    for (int i = 0; i < 256; i += kWidth) store(to + i, to_floats((nibbles(block + 4, i) ^ 8) - 8));
    I8Rotated::turn(to, I8Scaled::scale_of(block) / 16);
  }
};

// A product as f32 has it: compilers would make one rounding of it and of a sum behind it.
Floats rounded_product(Floats a, float b) {
  Floats product = a * b;
  __asm__("" : "+m"(product));
  return product;
}

// Adding and subtracting 1.5 * 2^23 rounds to whole numbers, ties to even.
struct I4Coded {
  static constexpr std::int64_t elements = 256, bytes = 148;
  static void read(const std::uint8_t* block, float* to) {
    static constexpr float kLevels[] = HEDDLE_I4_LEVELS;
    const GroupScales scales(block + 4);
    for (int i = 0; i < 256; i += kWidth) {
      const Floats exact =
          rounded_product(look_up(kLevels, nibbles(block + 20, i)), scales.of[i / 16]);
      const Floats number = (exact + 12582912.0f) - 12582912.0f;
      const Floats low = number > -127.0f ? number : all(-127.0f);
      store(to + i, low < 127.0f ? low : all(127.0f));
    }
    I8Rotated::turn(to, I8Scaled::scale_of(block) / 16);
  }
};

struct Mxfp8 {
  static constexpr std::int64_t elements = 256, bytes = 264;
  static void read(const std::uint8_t* block, float* to) {
    for (int i = 0; i < 256; i += kWidth) {
      const std::uint32_t bits = std::uint32_t{block[i / 32]} << 23;
      float scale = 0;
      std::memcpy(&scale, &bits, sizeof scale);
      store(to + i, widen_e4m3(block + 8 + i) * scale);
    }
  }
};

struct I4Grouped {
  static constexpr std::int64_t elements = 256, bytes = 160;
  static void read(const std::uint8_t* block, float* to) {
    for (int i = 0; i < 256; i += kWidth) {
      const float factor = I8Scaled::scale_of(block + i / 64 * 4),
                  summand = I8Scaled::scale_of(block + 16 + i / 64 * 4);
      store(to + i, rounded_product(to_floats(nibbles(block + 32, i) - 8), factor) + summand);
    }
  }
};

}  // namespace

}  // namespace heddle::cpu
