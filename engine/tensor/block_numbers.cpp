#include "engine/tensor/block_numbers.h"

#include <cstdint>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/numbers.h"

namespace heddle::engine {
namespace {

// The bytes of a block, counted from its first.
class BlockBytes {
 public:
  explicit BlockBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  int at(int i) const { return std::to_integer<int>(bytes_[std::size_t(i)]); }
  int signed_at(int i) const { return static_cast<std::int8_t>(at(i)); }
  int bit(int i, int number) const { return at(i) >> number & 1; }
  // Four bits: the low ones of a byte, or the high ones.
  int half(int i, bool is_high) const { return is_high ? at(i) >> 4 : at(i) & 15; }
  float f16(int i) const {
    float value = 0;
    to_floats(DType::f16, bytes_.subspan(std::size_t(i), 2), &value);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
};

void read_bytes(const BlockBytes& b, float* to) {
  const float scale = b.f16(0);
  for (int i = 0; i < 32; ++i) to[i] = scale * float(b.signed_at(2 + i));
}

// 32 numbers of 4 bits, or of 5 whose highest stand together before the others. Either they have a
// least one, or they are counted from the middle.
struct SmallForm {
  bool has_least = false;
  int bits = 4;
};
void read_small(const BlockBytes& b, SmallForm form, float* to) {
  const float scale = b.f16(0), least = form.has_least ? b.f16(2) : 0;
  const int fifths = form.has_least ? 4 : 2, halves = form.bits == 5 ? fifths + 4 : fifths;
  const int middle = form.has_least ? 0 : 1 << (form.bits - 1);
  for (int i = 0; i < 32; ++i) {
    int number = b.half(halves + i % 16, i >= 16);
    if (form.bits == 5) number += 16 * b.bit(fifths + i / 8, i % 8);
    to[i] = scale * float(number - middle) + least;
  }
}

// The scale of a group of 32, or its least number: 16 numbers of 6 bits in 12 bytes. The first
// eight fill the low bits of bytes 0 to 7, the others' high bits stand above those.
int six_bits(const BlockBytes& b, int first, int group, bool is_least) {
  const int own = first + group % 4 + (is_least ? 4 : 0);
  if (group < 4) return b.at(own) & 63;
  return b.half(first + 4 + group, is_least) | b.at(own) >> 6 << 4;
}

void read_groups(const BlockBytes& b, int bits, float* to) {
  const float scale = b.f16(0), least = b.f16(2);
  constexpr int kSixes = 4, kFifths = 16;
  const int halves = bits == 5 ? kFifths + 32 : kFifths;
  for (int group = 0; group < 8; ++group) {
    const float by = scale * float(six_bits(b, kSixes, group, false)),
                less = least * float(six_bits(b, kSixes, group, true));
    for (int i = 0; i < 32; ++i) {
      int number = b.half(halves + group / 2 * 32 + i, group % 2 != 0);
      if (bits == 5) number += 16 * b.bit(kFifths + i, group);
      *to++ = by * float(number) - less;
    }
  }
}

// Two halves of 128 numbers, of which four share a byte of high bits, and two one of low bits.
void read_sixes(const BlockBytes& b, float* to) {
  constexpr int kHigh = 128, kScales = 192, kScale = 208;
  const float scale = b.f16(kScale);
  for (int i = 0; i < 256; ++i) {
    const int part = i / 128, quarter = i % 128 / 32, at = i % 32;
    const int low = b.half(64 * part + quarter % 2 * 32 + at, quarter >= 2),
              high = b.at(kHigh + 32 * part + at) >> (2 * quarter) & 3;
    to[i] = scale * float(b.signed_at(kScales + i / 16)) * float((low | high << 4) - 32);
  }
}

}  // namespace

void block_floats(DType dtype, std::span<const std::byte> blocks, float* dst) {
  const DTypeBlock block = dtype_block(dtype);
  for (; !blocks.empty(); blocks = blocks.subspan(std::size_t(block.bytes))) {
    const BlockBytes bytes(blocks.first(std::size_t(block.bytes)));
    switch (dtype) {
      case DType::q8_0:
        read_bytes(bytes, dst);
        break;
      case DType::q4_0:
        read_small(bytes, {}, dst);
        break;
      case DType::q4_1:
        read_small(bytes, {.has_least = true}, dst);
        break;
      case DType::q5_0:
        read_small(bytes, {.bits = 5}, dst);
        break;
      case DType::q5_1:
        read_small(bytes, {.has_least = true, .bits = 5}, dst);
        break;
      case DType::q4_k:
        read_groups(bytes, 4, dst);
        break;
      case DType::q5_k:
        read_groups(bytes, 5, dst);
        break;
      case DType::q6_k:
        read_sixes(bytes, dst);
        break;
      default:
        throw Error(Code::unsupported,
                    cat("blocks of ", dtype_name(dtype), " are not read on the host"));
    }
    dst += block.elements;
  }
}

}  // namespace heddle::engine
