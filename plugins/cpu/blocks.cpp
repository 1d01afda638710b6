#include "blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "elements.h"
#include "heddle/device.hpp"

namespace heddle::cpu {

namespace {

using Byte = std::uint8_t;

float half_at(const Byte* from) {
  return from_f16(static_cast<std::uint16_t>(from[0] | from[1] << 8));
}

// ---- blocks of 32: half d, perhaps half m, perhaps 32 fifth bits, numbers ----

void read_q8_0(const Byte* block, float* to) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i)
    to[i] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
}

// The low half of byte i is element i, its high half element i + 16.
int nibble(const Byte* bytes, int i) { return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4; }
int fifth_bit(const Byte* bits, int i) { return (bits[i / 8] >> i % 8 & 1) << 4; }

void read_q4_0(const Byte* block, float* to) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) to[i] = d * static_cast<float>(nibble(block + 2, i) - 8);
}

void read_q4_1(const Byte* block, float* to) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int i = 0; i < 32; ++i) to[i] = d * static_cast<float>(nibble(block + 4, i)) + m;
}

void read_q5_0(const Byte* block, float* to) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i)
    to[i] = d * static_cast<float>((nibble(block + 6, i) | fifth_bit(block + 2, i)) - 16);
}

void read_q5_1(const Byte* block, float* to) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int i = 0; i < 32; ++i)
    to[i] = d * static_cast<float>(nibble(block + 8, i) | fifth_bit(block + 4, i)) + m;
}

// ---- blocks of 256: scales of the groups inside, in 6 or 8 bits, times a half ----

// Scale and minimum of group 0 to 7: 16 numbers of 6 bits in 12 bytes. The first four of each lie
// in the low bits of bytes 0 to 7; the others are put together from bytes 8 to 11 (low 4 bits) and
// the two high bits of those.
struct Group {
  int scale, least;
};
Group group_of(const Byte* packed, int g) {
  if (g < 4) return {packed[g] & 63, packed[g + 4] & 63};
  return {(packed[g + 4] & 15) | packed[g - 4] >> 6 << 4, packed[g + 4] >> 4 | packed[g] >> 6 << 4};
}

// Groups of 32: two groups share 32 bytes, one in the low and one in the high halves.
int nibble_of_pair(const Byte* bytes, int g, int i) {
  return bytes[g / 2 * 32 + i] >> g % 2 * 4 & 15;
}

void read_q4_k(const Byte* block, float* to) {
  const float d = half_at(block), least = half_at(block + 2);
  for (int g = 0; g < 8; ++g) {
    const Group group = group_of(block + 4, g);
    const float scale = d * static_cast<float>(group.scale),
                shift = least * static_cast<float>(group.least);
    for (int i = 0; i < 32; ++i)
      to[g * 32 + i] = scale * static_cast<float>(nibble_of_pair(block + 16, g, i)) - shift;
  }
}

void read_q5_k(const Byte* block, float* to) {
  const float d = half_at(block), least = half_at(block + 2);
  for (int g = 0; g < 8; ++g) {
    const Group group = group_of(block + 4, g);
    const float scale = d * static_cast<float>(group.scale),
                shift = least * static_cast<float>(group.least);
    for (int i = 0; i < 32; ++i) {
      const int fifth = (block[16 + i] >> g & 1) << 4;
      to[g * 32 + i] = scale * static_cast<float>(nibble_of_pair(block + 48, g, i) | fifth) - shift;
    }
  }
}

// Halves of 128 elements: 64 bytes of low nibbles, 32 bytes of pairs of high bits; scales of groups
// of 16.
void read_q6_k(const Byte* block, float* to) {
  const float d = half_at(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, at = i % 32;
    const int low = block[half * 64 + quarter % 2 * 32 + at] >> quarter / 2 * 4 & 15;
    const int high = (block[128 + half * 32 + at] >> quarter * 2 & 3) << 4;
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(block[192 + i / 16]));
    to[i] = scale * static_cast<float>((low | high) - 32);
  }
}

// ---- 256 whole numbers behind their scale, an f32 ----

float float_at(const Byte* from) {
  float value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void read_i8_scaled(const Byte* block, float* to) {
  const float scale = float_at(block);
  for (int i = 0; i < 256; ++i)
    to[i] = scale * static_cast<float>(static_cast<std::int8_t>(block[4 + i]));
}

// By its definition: an element of the matrix is negative where an odd number of base-4 digits of
// its row and column add up to 3. All sums are whole numbers that f32 holds.
void rotate(const std::int8_t* numbers, float scale, float* to) {
  for (unsigned i = 0; i < 256; ++i) {
    int sum = 0;
    for (unsigned k = 0; k < 256; ++k) {
      const unsigned both = i ^ k;
      sum += std::popcount(both & both >> 1 & 0x55) % 2 == 0 ? numbers[k] : -numbers[k];
    }
    to[i] = scale / 16 * static_cast<float>(sum);
  }
}

void read_i8_rotated(const Byte* block, float* to) {
  std::int8_t numbers[256];
  std::memcpy(numbers, block + 4, sizeof numbers);
  rotate(numbers, float_at(block), to);
}

// ---- 256 numbers of 4 bits, 32 after another in 16 bytes ----

int nibble_of_all(const Byte* bytes, int i) { return nibble(bytes + i / 32 * 16, i % 32); }

void read_nvfp4(const Byte* block, float* to) {
  static constexpr float kNumbers[] = {0, 0.5f,  1,  1.5f,  2,  3,  4,  6,
                                       0, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  for (int i = 0; i < 256; ++i) {
    const float scale = float_at(block) * from_e4m3(block[4 + i / 16]);
    to[i] = scale * kNumbers[nibble_of_all(block + 20, i)];
  }
}

void read_i4_rotated(const Byte* block, float* to) {
  std::int8_t numbers[256];
  for (int i = 0; i < 256; ++i)
    numbers[i] = static_cast<std::int8_t>((nibble_of_all(block + 4, i) ^ 8) - 8);
  rotate(numbers, float_at(block), to);
}

void read_i4_coded(const Byte* block, float* to) {
  static constexpr float kLevels[] = HEDDLE_I4_LEVELS;
  std::int8_t numbers[256];
  for (int i = 0; i < 256; ++i) {
    const float number =
        std::nearbyint(kLevels[nibble_of_all(block + 20, i)] * from_e4m3(block[4 + i / 16]));
    numbers[i] = static_cast<std::int8_t>(number > -127 ? std::min(number, 127.0f) : -127);
  }
  rotate(numbers, float_at(block), to);
}

void read_mxfp8(const Byte* block, float* to) {
  for (int i = 0; i < 256; ++i)
    to[i] = std::bit_cast<float>(std::uint32_t{block[i / 32]} << 23) * from_e4m3(block[8 + i]);
}

void read_i4_grouped(const Byte* block, float* to) {
  for (int i = 0; i < 256; ++i) {
    const float factor = float_at(block + i / 64 * 4), summand = float_at(block + 16 + i / 64 * 4);
    to[i] = factor * static_cast<float>(nibble_of_all(block + 32, i) - 8) + summand;
  }
}

using Read = void (*)(const Byte*, float*);
constexpr Read kReads[] = {read_q8_0,      read_q4_0,       read_q4_1,      read_q5_0,
                           read_q5_1,      read_q4_k,       read_q5_k,      read_q6_k,
                           read_i8_scaled, read_i8_rotated, read_nvfp4,     read_i4_rotated,
                           read_i4_coded,  read_mxfp8,      read_i4_grouped};

}  // namespace

void load_blocks(heddle_dtype dtype, const void* from, std::int64_t count, float* to) {
  const Read read = kReads[dtype - HEDDLE_Q8_0];
  const std::int64_t elements = device::block_elements(dtype), bytes = device::block_bytes(dtype);
  const auto* block = static_cast<const Byte*>(from);
  for (; count >= elements; count -= elements, to += elements, block += bytes) read(block, to);
  if (count == 0) return;
  float rest[256];
  read(block, rest);
  std::copy(rest, rest + count, to);
}

}  // namespace heddle::cpu
