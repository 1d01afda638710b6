#include "engine/tensor/dtype.h"

#include <algorithm>
#include <array>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::core {
namespace {

struct Row {
  DType dtype;
  std::size_t size;
  bool floating;
  std::string_view name, safetensors;
};

constexpr std::array<Row, 15> kRows = {{
    {DType::f32, 4, true, "f32", "F32"},
    {DType::f16, 2, true, "f16", "F16"},
    {DType::bf16, 2, true, "bf16", "BF16"},
    {DType::i32, 4, false, "i32", "I32"},
    {DType::i64, 8, false, "i64", "I64"},
    {DType::u8, 1, false, "u8", "U8"},
    {DType::i8, 1, false, "i8", "I8"},
    {DType::f8_e4m3, 1, true, "f8_e4m3", "F8_E4M3"},
    {DType::f8_e5m2, 1, true, "f8_e5m2", "F8_E5M2"},
    {DType::f64, 8, true, "f64", "F64"},
    {DType::bool8, 1, false, "bool8", "BOOL"},
    {DType::i16, 2, false, "i16", "I16"},
    {DType::u16, 2, false, "u16", "U16"},
    {DType::u32, 4, false, "u32", "U32"},
    {DType::u64, 8, false, "u64", "U64"},
}};

// Row n holds the enumerator n + 1.
static_assert([] {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].dtype) != i + 1) return false;
  }
  return true;
}());

const Row& row_of(DType dtype) {
  const auto number = static_cast<std::int32_t>(dtype);
  if (is_dtype(number)) return kRows[static_cast<std::size_t>(number) - 1];
  throw Error(Code::invalid_argument,
              cat("no element type has the number ", number, "; known are 1 to ", kRows.size()));
}

std::optional<DType> find(std::string_view name, std::string_view Row::*column) {
  const auto row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.*column == name; });
  if (row == kRows.end()) return std::nullopt;
  return row->dtype;
}

}  // namespace

bool is_dtype(std::int32_t number) {
  return number >= 1 && static_cast<std::size_t>(number) <= kRows.size();
}

std::size_t dtype_size(DType dtype) { return row_of(dtype).size; }
std::string_view dtype_name(DType dtype) { return row_of(dtype).name; }
std::string_view safetensors_name(DType dtype) { return row_of(dtype).safetensors; }
bool is_floating(DType dtype) { return row_of(dtype).floating; }

std::optional<DType> parse_dtype(std::string_view name) { return find(name, &Row::name); }
std::optional<DType> parse_safetensors_dtype(std::string_view name) {
  return find(name, &Row::safetensors);
}

}  // namespace heddle::core
