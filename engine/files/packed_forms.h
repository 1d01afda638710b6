// The formats of packed matrices (packed_rows.h), one reader each. Part of packed_rows.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/files/checkpoint.h"
#include "engine/files/packed_rows.h"

namespace heddle::engine {

// A matrix as it lies in the file, what is said of it, and what stands beside it.
class PackedMatrix {
 public:
  // `views`: of the file, sorted by name. `said`: the matrix's description, or nullptr.
  PackedMatrix(const std::vector<TensorView>& views, const TensorView& weight, const Json* said,
               std::string_view format, const std::filesystem::path& path);

  std::int64_t rows() const { return weight_.shape[0]; }
  std::int64_t row_bytes() const { return weight_.shape[1]; }

  // A matrix of bytes of one of these types; throws invalid_argument for another.
  void require(std::initializer_list<DType> types) const;

  // The tensor "MODULE.NAME"; nullptr where there is none. sibling_at() throws not_found then.
  const TensorView* sibling(std::string_view name) const;
  const TensorView& sibling_at(std::string_view name) const;

  // sibling_at(), of which so many elements of one of these types are wanted.
  const TensorView& scales(std::string_view name, std::initializer_list<DType> types,
                           std::int64_t count) const;

  // A number of the description, by itself or among its "params".
  std::int64_t number(std::string_view key, std::int64_t otherwise) const;
  bool flag(std::string_view key) const;

  // The numbers that are rotated together. Throws invalid_argument where they do not divide the
  // columns or are no power of 4.
  std::int64_t rotated_group(std::int64_t columns) const;

  [[noreturn]] void refuse(Code code, const std::string& why) const;

 private:
  const Json* setting(std::string_view key) const;

  const std::vector<TensorView>& views_;
  const TensorView& weight_;
  const Json* const said_;
  const std::string_view format_;
  const std::string module_;
  const std::filesystem::path& path_;
};

// How the rows are read, and how many numbers each of them holds.
struct PackedForm {
  std::shared_ptr<const PackedRows> rows;
  std::int64_t columns = 0;
};

// Whole numbers, perhaps rotated: packed_numbers.cpp.
PackedForm int8_form(const PackedMatrix& matrix);
PackedForm w4a4_form(const PackedMatrix& matrix);
PackedForm int4_form(const PackedMatrix& matrix);
PackedForm w4a8_form(const PackedMatrix& matrix);

// Numbers in groups, as they are: packed_groups.cpp.
PackedForm nvfp4_form(const PackedMatrix& matrix);
PackedForm mxfp8_form(const PackedMatrix& matrix);
PackedForm awq_form(const PackedMatrix& matrix);

// Numbers of a block, of all block formats that these matrices are put into.
inline constexpr std::int64_t kPackedBlock = 256;

// Number i of a row of halves, the even ones of which are the low ones.
inline int low_first(std::span<const std::byte> bytes, std::int64_t i) {
  return int(bytes[std::size_t(i / 2)]) >> i % 2 * 4 & 15;
}

// Which of two neighbours stands in the low half of a byte.
enum class Low { even, odd };

// Writes `count` numbers as blocks have them: the low half of byte i of 16 is number i, the high
// half number i + 16. REQUIRES: a multiple of 32.
inline void put_nibbles(const std::byte* from, std::int64_t count, Low low, std::byte* to) {
  for (; count > 0; count -= 32, from += 16, to += 16)
    for (int j = 0; j < 8; ++j) {
      const unsigned a = unsigned(from[j]), b = unsigned(from[8 + j]);
      const auto lower = std::byte((a & 15) | (b & 15) << 4), upper = std::byte(a >> 4 | (b & 240));
      to[2 * j] = low == Low::even ? lower : upper;
      to[2 * j + 1] = low == Low::even ? upper : lower;
    }
}

}  // namespace heddle::engine
