#include "blocks.h"

#include <algorithm>
#include <bit>
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
// its row and column add up to 3.
void read_i8_rotated(const Byte* block, float* to) {
  const float scale = float_at(block) / 16;
  for (unsigned i = 0; i < 256; ++i) {
    int sum = 0;
    for (unsigned k = 0; k < 256; ++k) {
      const unsigned both = i ^ k;
      const int number = static_cast<std::int8_t>(block[4 + k]);
      sum += std::popcount(both & both >> 1 & 0x55) % 2 == 0 ? number : -number;
    }
    to[i] = scale * static_cast<float>(sum);
  }
}

using Read = void (*)(const Byte*, float*);
constexpr Read kReads[] = {read_q8_0, read_q4_0, read_q4_1, read_q5_0,      read_q5_1,
                           read_q4_k, read_q5_k, read_q6_k, read_i8_scaled, read_i8_rotated};

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
