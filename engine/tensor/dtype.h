// The element types of tensors, as files name them and as the C ABI numbers them (heddle_dtype),
// with their sizes. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::core {

// 16 and 17 belong to the block formats q8_0 and q4_0, whose elements have no size of their own.
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
};

// Whether the number is one of the enumerators: for numbers that come across the C ABI.
bool is_dtype(std::int32_t number);

// Of the functions below each takes an enumerator; another number throws Error(invalid_argument)
// with its value.

// Bytes per element: 1, 2, 4 or 8.
std::size_t dtype_size(DType dtype);

// "f32", "bf16", "f8_e4m3", ...: for people and for options.
std::string_view dtype_name(DType dtype);

// "F32", "BF16", "F8_E4M3", "BOOL", ...: as safetensors headers say it.
std::string_view safetensors_name(DType dtype);

bool is_floating(DType dtype);

// The other way round; exact spelling. Nothing for a name that is not known.
std::optional<DType> parse_dtype(std::string_view name);
std::optional<DType> parse_safetensors_dtype(std::string_view name);

}  // namespace heddle::core
