#include "engine/tensor/dtype.h"

#include <algorithm>
#include <array>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

struct Row {
  DType dtype;
  std::int64_t bytes;  // of a block
  bool floating;
  std::string_view name, safetensors;
  std::int64_t elements = 1;  // of a block
};

constexpr std::array<Row, 30> kRows = {{
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
    {DType::q8_0, 34, true, "q8_0", "", 32},
    {DType::q4_0, 18, true, "q4_0", "", 32},
    {DType::q4_1, 20, true, "q4_1", "", 32},
    {DType::q5_0, 22, true, "q5_0", "", 32},
    {DType::q5_1, 24, true, "q5_1", "", 32},
    {DType::q4_k, 144, true, "q4_k", "", 256},
    {DType::q5_k, 176, true, "q5_k", "", 256},
    {DType::q6_k, 210, true, "q6_k", "", 256},
    {DType::i8_scaled, 260, true, "i8_scaled", "", 256},
    {DType::i8_rotated, 260, true, "i8_rotated", "", 256},
    {DType::nvfp4, 148, true, "nvfp4", "", 256},
    {DType::i4_rotated, 132, true, "i4_rotated", "", 256},
    {DType::i4_coded, 148, true, "i4_coded", "", 256},
    {DType::mxfp8, 264, true, "mxfp8", "", 256},
    {DType::i4_grouped, 160, true, "i4_grouped", "", 256},
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
  if (name.empty()) return std::nullopt;
  const auto row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.*column == name; });
  if (row == kRows.end()) return std::nullopt;
  return row->dtype;
}

}  // namespace

bool is_dtype(std::int32_t number) {
  return number >= 1 && static_cast<std::size_t>(number) <= kRows.size();
}

DTypeBlock dtype_block(DType dtype) {
  const Row& row = row_of(dtype);
  return {row.elements, row.bytes};
}

bool is_block_format(DType dtype) { return row_of(dtype).elements != 1; }

std::size_t dtype_size(DType dtype) {
  const Row& row = row_of(dtype);
  if (row.elements == 1) return std::size_t(row.bytes);
  throw Error(Code::unsupported,
              cat("an element of ", row.name, " has no size of its own: ", row.elements,
                  " neighbours share a block of ", row.bytes, " bytes"));
}

std::int64_t dtype_bytes(DType dtype, std::int64_t elements) {
  const Row& row = row_of(dtype);
  if (row.elements == 1) return elements * row.bytes;
  if (elements % row.elements != 0)
    throw Error(Code::invalid_argument,
                cat(elements, " elements of ", row.name, " are no whole number of its blocks of ",
                    row.elements));
  return elements / row.elements * row.bytes;
}

std::string_view dtype_name(DType dtype) { return row_of(dtype).name; }
std::string_view safetensors_name(DType dtype) { return row_of(dtype).safetensors; }
bool is_floating(DType dtype) { return row_of(dtype).floating; }

std::optional<DType> parse_dtype(std::string_view name) { return find(name, &Row::name); }
std::optional<DType> parse_safetensors_dtype(std::string_view name) {
  return find(name, &Row::safetensors);
}

}  // namespace heddle::engine
