// Block formats to f32, a vector at a time: what blocks.cpp says, bit for bit. Part of
// vector_body.h, and included by it alone.
#pragma once

#include <cstdint>
#include <cstring>

#include "vector_bytes.h"
#include "vector_quantised_blocks.h"

namespace heddle::cpu {

namespace {

// ---- blocks of 32 ----

struct Q8_0 {
  static constexpr std::int64_t elements = 32, bytes = 34;
  static void read(const std::uint8_t* block, float* to) {
    const float d = half_at(block);
    for (int i = 0; i < 32; i += kWidth)
      store(to + i, to_floats(__builtin_convertvector(load<SignedBytes>(block + 2 + i), Ints)) * d);
  }
};

// Low halves of 16 bytes, then their high halves.
template <class Convert>
inline void each_nibble(const std::uint8_t* from, float* to, Convert convert) {
  for (int i = 0; i < 16; i += kWidth) {
    const Ints both = widen_bytes(from + i);
    store(to + i, convert(both & 15, i));
    store(to + 16 + i, convert(both >> 4, 16 + i));
  }
}

// Bits i, i + 1, ... of 32, each as 0 or 16.
Ints fifth_bits(std::uint32_t bits, int i) {
  Ints place;
  for (int lane = 0; lane < kWidth; ++lane) place[lane] = lane;
  const Ints all_bits = static_cast<std::int32_t>(bits >> i) - Ints{};
  return (all_bits >> place & 1) << 4;
}

std::uint32_t bits_at(const std::uint8_t* from) {
  std::uint32_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

struct Q4_0 {
  static constexpr std::int64_t elements = 32, bytes = 18;
  static void read(const std::uint8_t* block, float* to) {
    const float d = half_at(block);
    each_nibble(block + 2, to, [d](Ints x, int) { return to_floats(x - 8) * d; });
  }
};

struct Q4_1 {
  static constexpr std::int64_t elements = 32, bytes = 20;
  static void read(const std::uint8_t* block, float* to) {
    const float d = half_at(block), m = half_at(block + 2);
    each_nibble(block + 4, to, [d, m](Ints x, int) { return to_floats(x) * d + m; });
  }
};

struct Q5_0 {
  static constexpr std::int64_t elements = 32, bytes = 22;
  static void read(const std::uint8_t* block, float* to) {
    const float d = half_at(block);
    const std::uint32_t fifths = bits_at(block + 2);
    each_nibble(block + 6, to, [d, fifths](Ints x, int i) {
      return to_floats((x | fifth_bits(fifths, i)) - 16) * d;
    });
  }
};

struct Q5_1 {
  static constexpr std::int64_t elements = 32, bytes = 24;
  static void read(const std::uint8_t* block, float* to) {
    const float d = half_at(block), m = half_at(block + 2);
    const std::uint32_t fifths = bits_at(block + 4);
    each_nibble(block + 8, to, [d, m, fifths](Ints x, int i) {
      return to_floats(x | fifth_bits(fifths, i)) * d + m;
    });
  }
};

// ---- blocks of 256 ----

struct GroupScale {
  float scale, shift;
};
GroupScale group_scale(const std::uint8_t* packed, int g, float d, float least) {
  const int scale = g < 4 ? packed[g] & 63 : (packed[g + 4] & 15) | packed[g - 4] >> 6 << 4;
  const int shift = g < 4 ? packed[g + 4] & 63 : packed[g + 4] >> 4 | packed[g] >> 6 << 4;
  return {d * static_cast<float>(scale), least * static_cast<float>(shift)};
}

struct Q4_K {
  static constexpr std::int64_t elements = 256, bytes = 144;
  static void read(const std::uint8_t* block, float* to) {
    const float d = half_at(block), least = half_at(block + 2);
    for (int g = 0; g < 8; g += 2) {
      const GroupScale low = group_scale(block + 4, g, d, least),
                       high = group_scale(block + 4, g + 1, d, least);
      for (int i = 0; i < 32; i += kWidth) {
        const Ints both = widen_bytes(block + 16 + g * 16 + i);
        store(to + g * 32 + i, to_floats(both & 15) * low.scale - low.shift);
        store(to + g * 32 + 32 + i, to_floats(both >> 4) * high.scale - high.shift);
      }
    }
  }
};

struct Q5_K {
  static constexpr std::int64_t elements = 256, bytes = 176;
  static void read(const std::uint8_t* block, float* to) {
    const float d = half_at(block), least = half_at(block + 2);
    for (int g = 0; g < 8; g += 2) {
      const GroupScale low = group_scale(block + 4, g, d, least),
                       high = group_scale(block + 4, g + 1, d, least);
      for (int i = 0; i < 32; i += kWidth) {
        const Ints both = widen_bytes(block + 48 + g * 16 + i),
                   fifths = widen_bytes(block + 16 + i);
        store(to + g * 32 + i,
              to_floats((both & 15) | (fifths >> g & 1) << 4) * low.scale - low.shift);
        store(to + g * 32 + 32 + i,
              to_floats(both >> 4 | (fifths >> (g + 1) & 1) << 4) * high.scale - high.shift);
      }
    }
  }
};

struct Q6_K {
  static constexpr std::int64_t elements = 256, bytes = 210;
  static void read(const std::uint8_t* block, float* to) {
    const float d = half_at(block + 208);
    for (int half = 0; half < 2; ++half, to += 128) {
      const std::uint8_t *low = block + half * 64, *high = block + 128 + half * 32,
                         *scales = block + 192 + half * 8;
      for (int i = 0; i < 32; i += kWidth) {
        const Ints first = widen_bytes(low + i), second = widen_bytes(low + 32 + i),
                   bits = widen_bytes(high + i);
        const auto put = [&](int quarter, Ints nibbles) __attribute__((always_inline)) {
          const auto scale = static_cast<std::int8_t>(scales[quarter * 2 + i / 16]);
          const Ints x = (nibbles | (bits >> quarter * 2 & 3) << 4) - 32;
          store(to + quarter * 32 + i, to_floats(x) * (d * static_cast<float>(scale)));
        };
        put(0, first & 15);
        put(1, second & 15);
        put(2, first >> 4);
        put(3, second >> 4);
      }
    }
  }
};

template <class Format>
void widen_blocks(const void* from, std::int64_t count, float* to) {
  const auto* block = static_cast<const std::uint8_t*>(from);
  for (; count >= Format::elements;
       count -= Format::elements, to += Format::elements, block += Format::bytes)
    Format::read(block, to);
  if (count == 0) return;
  float rest[Format::elements];
  Format::read(block, rest);
  std::memcpy(to, rest, static_cast<std::size_t>(count) * sizeof(float));
}

void widen_small(heddle_dtype dtype, const void* from, std::int64_t count, float* to) {
  switch (dtype) {
    case HEDDLE_F8_E4M3:
      return widen_f8(from, count, to, widen_e4m3);
    case HEDDLE_F8_E5M2:
      return widen_f8(from, count, to, widen_e5m2);
    case HEDDLE_Q8_0:
      return widen_blocks<Q8_0>(from, count, to);
    case HEDDLE_Q4_0:
      return widen_blocks<Q4_0>(from, count, to);
    case HEDDLE_Q4_1:
      return widen_blocks<Q4_1>(from, count, to);
    case HEDDLE_Q5_0:
      return widen_blocks<Q5_0>(from, count, to);
    case HEDDLE_Q5_1:
      return widen_blocks<Q5_1>(from, count, to);
    case HEDDLE_Q4_K:
      return widen_blocks<Q4_K>(from, count, to);
    case HEDDLE_Q5_K:
      return widen_blocks<Q5_K>(from, count, to);
    case HEDDLE_Q6_K:
      return widen_blocks<Q6_K>(from, count, to);
    case HEDDLE_I8_SCALED:
      return widen_blocks<I8Scaled>(from, count, to);
    case HEDDLE_I8_ROTATED:
      return widen_blocks<I8Rotated>(from, count, to);
    case HEDDLE_NVFP4:
      return widen_blocks<Nvfp4>(from, count, to);
    case HEDDLE_I4_ROTATED:
      return widen_blocks<I4Rotated>(from, count, to);
    case HEDDLE_I4_CODED:
      return widen_blocks<I4Coded>(from, count, to);
    case HEDDLE_MXFP8:
      return widen_blocks<Mxfp8>(from, count, to);
    default:
      return widen_blocks<I4Grouped>(from, count, to);
  }
}

// ---- turning 32 rows ----

// Exchanges the stretches of `distance` numbers that lie crosswise in two rows so far apart: with
// all distances in turn a square is turned.
template <int distance>
[[gnu::always_inline]] inline void exchange(Floats& a, Floats& b) {
  const Floats x = a, y = b;
#if HEDDLE_VECTOR_WIDTH == 16
  if constexpr (distance == 1) {
    a = __builtin_shufflevector(x, y, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
    b = __builtin_shufflevector(x, y, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  } else if constexpr (distance == 2) {
    a = __builtin_shufflevector(x, y, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
    b = __builtin_shufflevector(x, y, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  } else if constexpr (distance == 4) {
    a = __builtin_shufflevector(x, y, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
    b = __builtin_shufflevector(x, y, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  } else {
    a = __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    b = __builtin_shufflevector(x, y, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  }
#elif HEDDLE_VECTOR_WIDTH == 8
  if constexpr (distance == 1) {
    a = __builtin_shufflevector(x, y, 0, 8, 2, 10, 4, 12, 6, 14);
    b = __builtin_shufflevector(x, y, 1, 9, 3, 11, 5, 13, 7, 15);
  } else if constexpr (distance == 2) {
    a = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
    b = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15);
  } else {
    a = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11);
    b = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15);
  }
#else
  if constexpr (distance == 1) {
    a = __builtin_shufflevector(x, y, 0, 4, 2, 6);
    b = __builtin_shufflevector(x, y, 1, 5, 3, 7);
  } else {
    a = __builtin_shufflevector(x, y, 0, 1, 4, 5);
    b = __builtin_shufflevector(x, y, 2, 3, 6, 7);
  }
#endif
}

template <int distance>
[[gnu::always_inline]] inline void exchange_all(Floats (&rows)[kWidth]) {
#pragma GCC unroll 16
  for (int r = 0; r < kWidth; ++r)
    if ((r & distance) == 0) exchange<distance>(rows[r], rows[r + distance]);
}

// packed[i * 32 + r] = a[r][i], squares of a vector's width at a time.
void pack_panel(const float* const* a, std::int64_t k, float* packed) {
  std::int64_t i = 0;
  for (; i + kWidth <= k; i += kWidth)
    for (int first = 0; first < kPanelColumns; first += kWidth) {
      Floats rows[kWidth];
#pragma GCC unroll 16
      for (int r = 0; r < kWidth; ++r) rows[r] = load<Floats>(a[first + r] + i);
      exchange_all<1>(rows);
      exchange_all<2>(rows);
#if HEDDLE_VECTOR_WIDTH >= 8
      exchange_all<4>(rows);
#endif
#if HEDDLE_VECTOR_WIDTH >= 16
      exchange_all<8>(rows);
#endif
#pragma GCC unroll 16
      for (int r = 0; r < kWidth; ++r) store(packed + (i + r) * kPanelColumns + first, rows[r]);
    }
  for (; i < k; ++i)
    for (int r = 0; r < kPanelColumns; ++r) packed[i * kPanelColumns + r] = a[r][i];
}

}  // namespace

}  // namespace heddle::cpu
