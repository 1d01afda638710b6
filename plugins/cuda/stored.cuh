// Elements of weights as they are stored: floats of 32, 16 and 8 bits and block formats, read as
// f32 one at a time. A number of a block is its scales times a small whole number: the same bits as
// plugins/cpu/blocks.cpp gives.
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

// Number i of a rotated block. An element of the matrix is negative where an odd number of base-4
// digits of its row and column add up to 3. All sums are whole numbers that f32 holds.
__device__ inline float rotated_sum(const unsigned char* numbers, int i) {
  int sum = 0;
  for (int k = 0; k < 256; ++k) {
    const int both = k ^ i;
    const int number = static_cast<signed char>(numbers[k]);
    sum += __popc(both & both >> 1 & 0x55) % 2 == 0 ? number : -number;
  }
  return static_cast<float>(sum);
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
      return rotated_sum(block + 4, i) * (float_at(block) / kRotationRoot);
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
  return dtype >= HEDDLE_Q8_0 && dtype <= HEDDLE_I8_ROTATED;
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

// Element i. REQUIRES: f32, f16, bf16, an f8 type or, of a row-major tensor, a block format.
__device__ inline float load_stored(const void* data, std::int32_t dtype, std::int64_t i) {
  if (dtype == HEDDLE_F32 || dtype == HEDDLE_F16 || dtype == HEDDLE_BF16)
    return load(data, dtype, i);
  if (dtype == HEDDLE_F8_E4M3 || dtype == HEDDLE_F8_E5M2)
    return static_cast<float>(from_f8(static_cast<const unsigned char*>(data)[i],
                                      dtype == HEDDLE_F8_E4M3 ? __NV_E4M3 : __NV_E5M2));
  return load_from_blocks(data, dtype, i);
}

}  // namespace heddle::cuda
