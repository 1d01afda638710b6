// The element types of tensors, as files name them and as the C ABI numbers them (heddle_dtype),
// with their sizes. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::engine {

// From q8_0 on elements have no size of their own: they stand in blocks of some neighbours along
// the innermost axis, which share their scales (the formats of gguf files, byte for byte, and
// those that matrices of ComfyUI's quantised files are put into, packed_rows.h).
enum class DType : std::int32_t {
  f32 = 1,
  f16 = 2,
  bf16 = 3,
  i32 = 4,
  i64 = 5,
  u8 = 6,
  i8 = 7,
  f8_e4m3 = 8,  // 4 exponent and 3 mantissa bits, no infinities ("fn")
  f8_e5m2 = 9,
  f64 = 10,
  bool8 = 11,  // one byte, 0 or 1
  i16 = 12,
  u16 = 13,
  u32 = 14,
  u64 = 15,
  q8_0 = 16,
  q4_0 = 17,
  q4_1 = 18,
  q5_0 = 19,
  q5_1 = 20,
  q4_k = 21,
  q5_k = 22,
  q6_k = 23,
  i8_scaled = 24,  // from here on blocks of 256: see heddle/abi/value.h
  i8_rotated = 25,
  nvfp4 = 26,
  i4_rotated = 27,
  i4_coded = 28,
  mxfp8 = 29,
  i4_grouped = 30,
};

// Whether the number is one of the enumerators: for numbers that come across the C ABI.
bool is_dtype(std::int32_t number);

// Of the functions below each takes an enumerator; another number throws Error(invalid_argument)
// with its value.

// The least that has a size: one element of most types, a block of a block format.
struct DTypeBlock {
  std::int64_t elements = 1, bytes = 0;
};
DTypeBlock dtype_block(DType dtype);
bool is_block_format(DType dtype);

// Bytes per element: 1, 2, 4 or 8. Throws Error(unsupported) for a block format: whoever counts
// elements has to be told that some have no size of their own.
std::size_t dtype_size(DType dtype);

// Bytes of so many neighbouring elements, or of the way to one (which may be negative). Throws
// Error(invalid_argument) when that is no whole number of blocks.
std::int64_t dtype_bytes(DType dtype, std::int64_t elements);

// "f32", "bf16", "f8_e4m3", ...: for people and for options.
std::string_view dtype_name(DType dtype);

// "F32", "BF16", "F8_E4M3", "BOOL", ...: as safetensors headers say it; "" for what they do not
// know.
std::string_view safetensors_name(DType dtype);

bool is_floating(DType dtype);

// The other way round; exact spelling. Nothing for a name that is not known.
std::optional<DType> parse_dtype(std::string_view name);
std::optional<DType> parse_safetensors_dtype(std::string_view name);

}  // namespace heddle::engine
