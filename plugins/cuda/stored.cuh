// Elements of weights as they are stored: floats of 32, 16 and 8 bits and block formats, read as
// f32 one at a time. Numbers of blocks have the same bits as plugins/cpu/blocks.cpp gives them.
#pragma once

#include "number.cuh"

namespace heddle::cuda {

// ---- blocks ----

struct BlockSize {
  int elements, bytes;
};

__device__ inline BlockSize block_size(std::int32_t dtype) {
  switch (dtype) {
    case HEDDLE_Q8_0:
      return {32, 34};
    case HEDDLE_Q4_0:
      return {32, 18};
    case HEDDLE_Q4_1:
      return {32, 20};
    case HEDDLE_Q5_0:
      return {32, 22};
    case HEDDLE_Q5_1:
      return {32, 24};
    case HEDDLE_Q4_K:
      return {256, 144};
    case HEDDLE_Q5_K:
      return {256, 176};
    case HEDDLE_Q6_K:
      return {256, 210};
    case HEDDLE_NVFP4:
    case HEDDLE_I4_CODED:
      return {256, 148};
    case HEDDLE_I4_ROTATED:
      return {256, 132};
    case HEDDLE_MXFP8:
      return {256, 264};
    case HEDDLE_I4_GROUPED:
      return {256, 160};
    default:
      return {256, 260};  // HEDDLE_I8_SCALED, HEDDLE_I8_ROTATED
  }
}

// Blocks begin at any even address, so halves are put together from bytes.
__device__ inline float half_at(const unsigned char* from) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(from[0] | from[1] << 8)));
}

// Blocks of 32: the low half of byte i is element i, its high half element i + 16.
__device__ inline int nibble(const unsigned char* bytes, int i) {
  return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4;
}
__device__ inline int fifth_bit(const unsigned char* bits, int i) {
  return (bits[i / 8] >> i % 8 & 1) << 4;
}

// Blocks of 256 in groups of 32, whose scale and minimum are numbers of 6 bits, 16 of them in 12
// bytes. The first four of each lie in the low bits of bytes 0 to 7; the others are put together
// from bytes 8 to 11 and the two high bits of those.
struct BlockGroup {
  float scale, shift;
};
__device__ inline BlockGroup group_of(const unsigned char* block, int g) {
  const unsigned char* packed = block + 4;
  const int scale = g < 4 ? packed[g] & 63 : (packed[g + 4] & 15) | packed[g - 4] >> 6 << 4,
            least = g < 4 ? packed[g + 4] & 63 : packed[g + 4] >> 4 | packed[g] >> 6 << 4;
  return {half_at(block) * static_cast<float>(scale),
          half_at(block + 2) * static_cast<float>(least)};
}
// Two groups share 32 bytes, one in the low and one in the high halves.
__device__ inline int nibble_of_pair(const unsigned char* bytes, int g, int i) {
  return bytes[g / 2 * 32 + i] >> g % 2 * 4 & 15;
}

__device__ inline float float_at(const unsigned char* from) {
  return __uint_as_float(from[0] | from[1] << 8 | from[2] << 16 |
                         static_cast<unsigned>(from[3]) << 24);
}

// Of a rotation of 256 numbers: the root of its order, which is a power of 2.
constexpr float kRotationRoot = 16;

// Numbers of 4 bits, 32 after another in 16 bytes.
__device__ inline int nibble_of_all(const unsigned char* bytes, int i) {
  return nibble(bytes + i / 32 * 16, i % 32);
}
__device__ inline float from_e4m3(unsigned char bits) {
  return static_cast<float>(from_f8(bits, __NV_E4M3));
}
// Two times a number of 4 bits: a sign, two bits of exponent, one of mantissa.
__device__ inline float twice_e2m1(int code) {
  const int exponent = code >> 1 & 3;
  const int magnitude = exponent == 0 ? code & 1 : (2 | (code & 1)) << (exponent - 1);
  return static_cast<float>(code > 7 ? -magnitude : magnitude);
}

__host__ __device__ inline bool is_rotated(std::int32_t dtype) {
  return dtype == HEDDLE_I8_ROTATED || dtype == HEDDLE_I4_ROTATED || dtype == HEDDLE_I4_CODED;
}

// Number i of a rotated block as it is stored: a whole number of 8 bits.
__device__ inline float turned_number(std::int32_t dtype, const unsigned char* block, int i) {
  if (dtype == HEDDLE_I8_ROTATED) return static_cast<float>(static_cast<signed char>(block[4 + i]));
  if (dtype == HEDDLE_I4_ROTATED) return static_cast<float>((nibble_of_all(block + 4, i) ^ 8) - 8);
  constexpr float kLevels[] = HEDDLE_I4_LEVELS;
  const float exact = kLevels[nibble_of_all(block + 20, i)] * from_e4m3(block[4 + i / 16]);
  return fminf(fmaxf(rintf(exact), -127.0f), 127.0f);
}

// Number i of a rotated block. An element of the matrix is negative where an odd number of base-4
// digits of its row and column add up to 3. All sums are whole numbers that f32 holds.
__device__ inline float rotated_sum(std::int32_t dtype, const unsigned char* block, int i) {
  float sum = 0;
  for (int k = 0; k < 256; ++k) {
    const int both = k ^ i;
    const float number = turned_number(dtype, block, k);
    sum += __popc(both & both >> 1 & 0x55) % 2 == 0 ? number : -number;
  }
  return sum;
}

// Element i of a block.
__device__ inline float load_in_block(std::int32_t dtype, const unsigned char* block, int i) {
  switch (dtype) {
    case HEDDLE_Q8_0:
      return half_at(block) * static_cast<float>(static_cast<signed char>(block[2 + i]));
    case HEDDLE_Q4_0:
      return half_at(block) * static_cast<float>(nibble(block + 2, i) - 8);
    case HEDDLE_Q4_1:
      return half_at(block) * static_cast<float>(nibble(block + 4, i)) + half_at(block + 2);
    case HEDDLE_Q5_0:
      return half_at(block) *
             static_cast<float>((nibble(block + 6, i) | fifth_bit(block + 2, i)) - 16);
    case HEDDLE_Q5_1:
      return half_at(block) * static_cast<float>(nibble(block + 8, i) | fifth_bit(block + 4, i)) +
             half_at(block + 2);
    case HEDDLE_Q4_K: {
      const BlockGroup group = group_of(block, i / 32);
      return group.scale * static_cast<float>(nibble_of_pair(block + 16, i / 32, i % 32)) -
             group.shift;
    }
    case HEDDLE_Q5_K: {
      const BlockGroup group = group_of(block, i / 32);
      const int fifth = (block[16 + i % 32] >> i / 32 & 1) << 4;
      return group.scale * static_cast<float>(nibble_of_pair(block + 48, i / 32, i % 32) | fifth) -
             group.shift;
    }
    case HEDDLE_I8_SCALED:
      return float_at(block) * static_cast<float>(static_cast<signed char>(block[4 + i]));
    case HEDDLE_I8_ROTATED:
    case HEDDLE_I4_ROTATED:
    case HEDDLE_I4_CODED:
      return rotated_sum(dtype, block, i) * (float_at(block) / kRotationRoot);
    case HEDDLE_NVFP4: {
      const float scale = float_at(block) * from_e4m3(block[4 + i / 16]);
      return twice_e2m1(nibble_of_all(block + 20, i)) * (0.5f * scale);
    }
    case HEDDLE_MXFP8:
      return from_e4m3(block[8 + i]) * __uint_as_float(unsigned{block[i / 32]} << 23);
    case HEDDLE_I4_GROUPED:
      // Two roundings, as on the CPU.
      return __fadd_rn(__fmul_rn(float_at(block + i / 64 * 4),
                                 static_cast<float>(nibble_of_all(block + 32, i) - 8)),
                       float_at(block + 16 + i / 64 * 4));
    default: {  // HEDDLE_Q6_K: halves of 128, 64 bytes of low nibbles, 32 of pairs of high bits
      const int half = i / 128, quarter = i % 128 / 32, at = i % 32;
      const int low = block[half * 64 + quarter % 2 * 32 + at] >> quarter / 2 * 4 & 15;
      const int high = (block[128 + half * 32 + at] >> quarter * 2 & 3) << 4;
      const auto scale = static_cast<signed char>(block[192 + i / 16]);
      return half_at(block + 208) * static_cast<float>(scale) *
             static_cast<float>((low | high) - 32);
    }
  }
}

__host__ __device__ inline bool is_in_blocks(std::int32_t dtype) {
  return dtype >= HEDDLE_Q8_0 && dtype <= HEDDLE_I4_GROUPED;
}

// Element i of a row-major tensor in blocks.
__device__ inline float load_from_blocks(const void* data, std::int32_t dtype, std::int64_t i) {
  const BlockSize size = block_size(dtype);
  // Sizes are powers of two.
  return load_in_block(dtype,
                       static_cast<const unsigned char*>(data) + i / size.elements * size.bytes,
                       static_cast<int>(i & (size.elements - 1)));
}

// ---- all of them ----

// Element i. REQUIRES: f32, f16, bf16, an f8 type, i8 or, of a row-major tensor, a block format.
__device__ inline float load_stored(const void* data, std::int32_t dtype, std::int64_t i) {
  if (dtype == HEDDLE_F32 || dtype == HEDDLE_F16 || dtype == HEDDLE_BF16)
    return load(data, dtype, i);
  if (dtype == HEDDLE_F8_E4M3 || dtype == HEDDLE_F8_E5M2)
    return static_cast<float>(from_f8(static_cast<const unsigned char*>(data)[i],
                                      dtype == HEDDLE_F8_E4M3 ? __NV_E4M3 : __NV_E5M2));
  if (dtype == HEDDLE_I8) return static_cast<float>(static_cast<const signed char*>(data)[i]);
  return load_from_blocks(data, dtype, i);
}

}  // namespace heddle::cuda
