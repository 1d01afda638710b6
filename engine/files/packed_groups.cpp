// Numbers in groups that share a scale, as they are: nvfp4, mxfp8, awq_w4a16.
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/files/joined_dtype.h"
#include "engine/files/packed_forms.h"
#include "engine/tensor/numbers.h"

namespace heddle::engine {
namespace {

float packed_float(DType type, std::span<const std::byte> data, std::int64_t i) {
  const std::size_t bytes = dtype_size(type);
  float value = 0;
  to_floats(type, data.subspan(std::size_t(i) * bytes, bytes), &value);
  return value;
}

std::int64_t filled_up(std::int64_t number, std::int64_t unit) {
  return (number + unit - 1) / unit * unit;
}

// Scales as tensor cores take them: tiles of 128 rows and 4 scales, in each of which the scales of
// rows r, r + 32, r + 64 and r + 96 stand together (cuBLAS, "block scaling factors layout"). Both
// sides are filled up to whole tiles.
class TiledScales {
 public:
  TiledScales(std::span<const std::byte> data, std::int64_t in_row)
      : data_(data), tiles_(filled_up(in_row, 4) / 4) {}
  std::byte at(std::int64_t row, std::int64_t i) const {
    const std::int64_t tile = row / 128 * tiles_ + i / 4;
    return data_[std::size_t(tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + i % 4)];
  }
  static std::int64_t count(std::int64_t rows, std::int64_t in_row) {
    return filled_up(rows, 128) * filled_up(in_row, 4);
  }

 private:
  const std::span<const std::byte> data_;
  const std::int64_t tiles_;
};

class Nvfp4 : public PackedRows {
 public:
  static constexpr std::int64_t kGroup = 16;

  // `given`: the factors of the columns, or nothing. Blocks are without them.
  Nvfp4(TiledScales scales, float scale, std::optional<TensorView> given, std::int64_t columns)
      : scales_(scales), scale_(scale), given_(std::move(given)), columns_(columns) {
    if (columns % kPackedBlock == 0) blocks_ = DType::nvfp4;
    if (!given_) return;
    factors_.resize(std::size_t(columns));
    to_floats(given_->dtype, given_->data, factors_.data());
  }
  const TensorView* given() const { return given_ ? &*given_ : nullptr; }

  void widen(std::int64_t row, std::span<const std::byte> bytes, float* to) const override {
    static constexpr float kNumbers[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (std::int64_t i = 0; i < columns_; ++i) {
      const std::byte stored = scales_.at(row, i / kGroup);
      const float scale = scale_ * packed_float(DType::f8_e4m3, {&stored, 1}, 0);
      const int code = high_first(bytes, i);
      to[i] = (code < 8 ? kNumbers[code] : -kNumbers[code - 8]) * scale;
      if (!factors_.empty()) to[i] *= factors_[std::size_t(i)];
    }
  }

  void to_blocks(std::int64_t row, std::span<const std::byte> bytes, std::int64_t begin,
                 std::int64_t end, std::byte* to) const override {
    for (; begin < end; begin += kPackedBlock, to += kPackedBlock / 2) {
      std::memcpy(to, &scale_, sizeof scale_);
      to += sizeof scale_;
      for (std::int64_t i = 0; i < kPackedBlock; i += kGroup)
        *to++ = scales_.at(row, (begin + i) / kGroup);
      put_nibbles(bytes.data() + begin / 2, kPackedBlock, Low::odd, to);
    }
  }

 private:
  static int high_first(std::span<const std::byte> bytes, std::int64_t i) {
    return low_first(bytes, i ^ 1);
  }

  const TiledScales scales_;
  const float scale_;
  const std::optional<TensorView> given_;  // a copy: views are put elsewhere
  std::vector<float> factors_;
  const std::int64_t columns_;
};

class Mxfp8 : public PackedRows {
 public:
  static constexpr std::int64_t kGroup = 32;

  Mxfp8(TiledScales scales, std::int64_t columns) : scales_(scales), columns_(columns) {
    if (columns % kPackedBlock == 0) blocks_ = DType::mxfp8;
  }

  void widen(std::int64_t row, std::span<const std::byte> bytes, float* to) const override {
    to_floats(DType::f8_e4m3, bytes, to);
    for (std::int64_t i = 0; i < columns_; ++i)
      to[i] *= std::bit_cast<float>(std::uint32_t(scales_.at(row, i / kGroup)) << 23);
  }

  void to_blocks(std::int64_t row, std::span<const std::byte> bytes, std::int64_t begin,
                 std::int64_t end, std::byte* to) const override {
    for (; begin < end; begin += kPackedBlock, to += kPackedBlock) {
      for (std::int64_t i = 0; i < kPackedBlock; i += kGroup)
        *to++ = scales_.at(row, (begin + i) / kGroup);
      std::memcpy(to, bytes.data() + begin, kPackedBlock);
    }
  }

 private:
  const TiledScales scales_;
  const std::int64_t columns_;
};

class Awq : public PackedRows {
 public:
  static constexpr std::int64_t kUsual = 64;  // numbers of a group

  // `scales`, `zeros`: (columns / group, rows).
  Awq(const TensorView& scales, const TensorView& zeros, std::int64_t columns, std::int64_t group)
      : scales_(scales), zeros_(zeros), columns_(columns), group_(group) {
    if (columns % kPackedBlock == 0 && group == kUsual) blocks_ = DType::i4_grouped;
  }

  void widen(std::int64_t row, std::span<const std::byte> bytes, float* to) const override {
    for (std::int64_t i = 0; i < columns_; ++i) {
      const float product = of_group(scales_, row, i) * float(low_first(bytes, i) - 8);
      to[i] = product + of_group(zeros_, row, i);
    }
  }

  void to_blocks(std::int64_t row, std::span<const std::byte> bytes, std::int64_t begin,
                 std::int64_t end, std::byte* to) const override {
    for (; begin < end; begin += kPackedBlock, to += kPackedBlock / 2) {
      for (const TensorView* part : {&scales_, &zeros_})
        for (std::int64_t i = 0; i < kPackedBlock; i += kUsual, to += sizeof(float)) {
          const float value = of_group(*part, row, begin + i);
          std::memcpy(to, &value, sizeof value);
        }
      put_nibbles(bytes.data() + begin / 2, kPackedBlock, Low::even, to);
    }
  }

 private:
  float of_group(const TensorView& part, std::int64_t row, std::int64_t i) const {
    return packed_float(part.dtype, part.data, i / group_ * part.shape[1] + row);
  }

  // Copies: the views that they are made of are put elsewhere.
  const TensorView scales_, zeros_;
  const std::int64_t columns_, group_;
};

void require_groups(const PackedMatrix& matrix, std::int64_t columns, std::int64_t group) {
  if (columns % group != 0)
    matrix.refuse(Code::invalid_argument, cat("has rows of ", columns, " numbers, which are no ",
                                              "whole groups of ", group));
}

}  // namespace

PackedForm nvfp4_form(const PackedMatrix& matrix) {
  matrix.require({DType::u8});
  const std::int64_t columns = 2 * matrix.row_bytes(), in_row = columns / Nvfp4::kGroup;
  require_groups(matrix, columns, Nvfp4::kGroup);
  const TensorView& scales = matrix.scales("weight_scale", {DType::f8_e4m3, DType::u8},
                                           TiledScales::count(matrix.rows(), in_row));
  const float scale =
      packed_float(DType::f32, matrix.scales("weight_scale_2", {DType::f32}, 1).data, 0);
  std::optional<TensorView> given;
  if (matrix.sibling("pre_quant_scale") != nullptr)
    given = matrix.scales("pre_quant_scale", {DType::bf16, DType::f16, DType::f32}, columns);
  if (given) given->shape = {columns};  // some files have an axis of one element beside it
  return {
      std::make_shared<Nvfp4>(TiledScales(scales.data, in_row), scale, std::move(given), columns),
      columns};
}

const TensorView* column_factors(const TensorView& tensor) {
  const auto* const rows = dynamic_cast<const Nvfp4*>(tensor.packed.get());
  return rows != nullptr ? rows->given() : nullptr;
}

PackedForm mxfp8_form(const PackedMatrix& matrix) {
  matrix.require({DType::f8_e4m3});
  const std::int64_t columns = matrix.row_bytes(), in_row = columns / Mxfp8::kGroup;
  require_groups(matrix, columns, Mxfp8::kGroup);
  const TensorView& scales =
      matrix.scales("weight_scale", {DType::u8}, TiledScales::count(matrix.rows(), in_row));
  return {std::make_shared<Mxfp8>(TiledScales(scales.data, in_row), columns), columns};
}

PackedForm awq_form(const PackedMatrix& matrix) {
  matrix.require({DType::i8, DType::u8});
  const std::int64_t columns = 2 * matrix.row_bytes();
  const std::int64_t group = matrix.number("group_size", Awq::kUsual);
  if (group < 1 || columns % group != 0)
    matrix.refuse(Code::invalid_argument, cat("is in groups of ", group, ", which do not divide ",
                                              "its ", columns, " columns"));
  const auto of_groups = [&](std::string_view name) -> const TensorView& {
    const TensorView& part =
        matrix.scales(name, {DType::bf16, DType::f16, DType::f32}, columns / group * matrix.rows());
    if (part.shape.size() != 2 || part.shape[1] != matrix.rows())
      matrix.refuse(Code::invalid_argument,
                    cat("has ", quote(part.name), " (", join(part.shape, ", "), "); (",
                        columns / group, ", ", matrix.rows(), ") is wanted"));
    return part;
  };
  return {
      std::make_shared<Awq>(of_groups("weight_scale"), of_groups("weight_zeros"), columns, group),
      columns};
}

}  // namespace heddle::engine
