// Whole numbers with a scale, perhaps rotated: int8_tensorwise, convrot_w4a4, asym_w4a8_int8.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/files/packed_forms.h"
#include "engine/tensor/numbers.h"
#include "heddle/abi/value.h"

namespace heddle::engine {
namespace {

constexpr float kUsualLevels[] = HEDDLE_I4_LEVELS;

// Numbers of at most 8 bits, one f32 for all of them or for each row. Sums of them are whole
// numbers that f32 holds, so that all is exact but the last product.
class WholeNumbers : public PackedRows {
 public:
  WholeNumbers(std::span<const std::byte> scales, std::int64_t columns, std::int64_t group)
      : scales_(scales), columns_(columns), group_(group) {
    if (columns % kPackedBlock == 0 && (group == 0 || group == kPackedBlock))
      blocks_ = group == 0 ? DType::i8_scaled : DType::i8_rotated;
  }

  void widen(std::int64_t row, std::span<const std::byte> bytes, float* to) const override {
    float scale = scale_of(row);
    // The root of a power of 4 is a power of 2.
    if (group_ > 0) scale /= float(std::lround(std::sqrt(double(group_))));
    std::vector<std::int8_t> all(static_cast<std::size_t>(columns_));
    numbers(row, bytes, 0, columns_, all.data());
    std::ranges::copy(all, to);
    for (std::int64_t first = 0; group_ > 0 && first < columns_; first += group_)
      rotate_group(to + first, group_);
    for (std::int64_t i = 0; i < columns_; ++i) to[i] *= scale;
  }

  void to_blocks(std::int64_t row, std::span<const std::byte> bytes, std::int64_t begin,
                 std::int64_t end, std::byte* to) const override {
    for (; begin < end; begin += kPackedBlock, to += kPackedBlock) {
      to = put_scale(row, to);
      numbers(row, bytes, begin, begin + kPackedBlock, reinterpret_cast<std::int8_t*>(to));
    }
  }

 protected:
  // Those from `begin` to `end` of a row, as they are rotated and without their scale.
  virtual void numbers(std::int64_t row, std::span<const std::byte> bytes, std::int64_t begin,
                       std::int64_t end, std::int8_t* to) const {
    (void)row;
    std::memcpy(to, bytes.data() + begin, std::size_t(end - begin));
  }

  std::byte* put_scale(std::int64_t row, std::byte* to) const {
    const float scale = scale_of(row);
    std::memcpy(to, &scale, sizeof scale);
    return to + sizeof scale;
  }

 private:
  float scale_of(std::int64_t row) const {
    const std::size_t at = scales_.size() == sizeof(float) ? 0 : std::size_t(row) * sizeof(float);
    float scale = 1;
    std::memcpy(&scale, scales_.data() + at, sizeof scale);
    return scale;
  }

  const std::span<const std::byte> scales_;  // f32, little-endian
  const std::int64_t columns_, group_;
};

// In two's complement.
class SignedHalves : public WholeNumbers {
 public:
  SignedHalves(std::span<const std::byte> scales, std::int64_t columns, std::int64_t group)
      : WholeNumbers(scales, columns, group) {
    if (blocks_ == DType::i8_rotated) blocks_ = DType::i4_rotated;
  }

  void to_blocks(std::int64_t row, std::span<const std::byte> bytes, std::int64_t begin,
                 std::int64_t end, std::byte* to) const override {
    if (blocks_ != DType::i4_rotated) return WholeNumbers::to_blocks(row, bytes, begin, end, to);
    for (; begin < end; begin += kPackedBlock, to += kPackedBlock / 2) {
      to = put_scale(row, to);
      put_nibbles(bytes.data() + begin / 2, kPackedBlock, Low::even, to);
    }
  }

 private:
  void numbers(std::int64_t, std::span<const std::byte> bytes, std::int64_t begin, std::int64_t end,
               std::int8_t* to) const override {
    for (; begin < end; ++begin) *to++ = std::int8_t((low_first(bytes, begin) ^ 8) - 8);
  }
};

// Levels times the scale of their group, rounded.
class CodedLevels : public WholeNumbers {
 public:
  struct Parts {
    std::span<const std::byte> channels;    // an f32 for each row
    std::span<const std::byte> scales;      // (rows, columns / size)
    DType type = DType::f8_e4m3;            // of `scales`
    std::int64_t columns = 0, rotated = 0;  // numbers that are rotated together
    std::int64_t size = 16;                 // numbers of a scale
    int bits = 4;                           // 6: levels are the whole numbers from -32 to 31
    std::vector<float> levels = {};         // of 4 bits; none: from -8 to 7
  };

  explicit CodedLevels(Parts parts)
      : WholeNumbers(parts.channels, parts.columns, parts.rotated), parts_(std::move(parts)) {
    if (kPackedBlock % parts_.size != 0) blocks_ = {};  // they begin amid a group
    for (int i = 0; i < 1 << parts_.bits && parts_.levels.size() < std::size_t(1) << parts_.bits;
         ++i)
      parts_.levels.push_back(float(i - (1 << (parts_.bits - 1))));
    const bool is_usual = std::ranges::equal(parts_.levels, kUsualLevels) && parts_.size == 16 &&
                          parts_.type == DType::f8_e4m3;
    if (is_usual && blocks_ == DType::i8_rotated) blocks_ = DType::i4_coded;
  }

  void to_blocks(std::int64_t row, std::span<const std::byte> bytes, std::int64_t begin,
                 std::int64_t end, std::byte* to) const override {
    if (blocks_ != DType::i4_coded) return WholeNumbers::to_blocks(row, bytes, begin, end, to);
    for (; begin < end; begin += kPackedBlock, to += kPackedBlock / 2) {
      to = put_scale(row, to);
      const std::byte* scales = parts_.scales.data() + (row * parts_.columns + begin) / 16;
      to = std::copy(scales, scales + kPackedBlock / 16, to);
      put_nibbles(bytes.data() + begin / 2, kPackedBlock, Low::even, to);
    }
  }

 private:
  void numbers(std::int64_t row, std::span<const std::byte> bytes, std::int64_t begin,
               std::int64_t end, std::int8_t* to) const override {
    const std::size_t wide = dtype_size(parts_.type);
    for (std::int64_t first = begin; first < end; first += parts_.size) {
      const std::size_t at = std::size_t((row * parts_.columns + first) / parts_.size);
      float scale = 0;
      to_floats(parts_.type, parts_.scales.subspan(at * wide, wide), &scale);
      for (std::int64_t i = first; i < std::min(end, first + parts_.size); ++i) {
        const float value = std::nearbyint(parts_.levels[code(bytes, i)] * scale);
        *to++ = std::int8_t(value > -127 ? std::min(value, 127.0f) : -127);  // so is NaN
      }
    }
  }

  std::size_t code(std::span<const std::byte> bytes, std::int64_t i) const {
    int code = low_first(bytes, i);
    // The two high bits of four neighbours stand in a byte behind all low halves.
    if (parts_.bits == 6)
      code |= (int(bytes[std::size_t(parts_.columns / 2 + i / 4)]) >> i % 4 * 2 & 3) << 4;
    return std::size_t(code);
  }

  Parts parts_;
};

PackedForm halves_form(const PackedMatrix& matrix, bool is_rotated) {
  matrix.require({DType::i8, DType::u8});
  const std::int64_t columns = 2 * matrix.row_bytes();
  const TensorView& scales = matrix.scales("weight_scale", {DType::f32}, matrix.rows());
  const std::int64_t group = is_rotated ? matrix.rotated_group(columns) : 0;
  return {std::make_shared<SignedHalves>(scales.data, columns, group), columns};
}

}  // namespace

PackedForm int8_form(const PackedMatrix& matrix) {
  matrix.require({DType::i8});
  const TensorView& scales = matrix.sibling_at("weight_scale");
  const auto count = std::int64_t(scales.data.size() / sizeof(float));
  if (scales.dtype != DType::f32 || (count != 1 && count != matrix.rows()))
    matrix.refuse(Code::invalid_argument,
                  cat("has the scales ", quote(scales.name), " (", join(scales.shape, ", "),
                      ") of ", dtype_name(scales.dtype), "; one f32, or one for each of its ",
                      matrix.rows(), " rows, is wanted"));
  const std::int64_t columns = matrix.row_bytes();
  const std::int64_t group = matrix.flag("convrot") ? matrix.rotated_group(columns) : 0;
  return {std::make_shared<WholeNumbers>(scales.data, columns, group), columns};
}

PackedForm w4a4_form(const PackedMatrix& matrix) { return halves_form(matrix, true); }

PackedForm int4_form(const PackedMatrix& matrix) {
  return halves_form(matrix, matrix.flag("convrot"));
}

PackedForm w4a8_form(const PackedMatrix& matrix) {
  matrix.require({DType::i8, DType::u8});
  if (const TensorView* summands = matrix.sibling("weight_correction"))
    matrix.refuse(Code::unsupported,
                  cat("has the summands ", quote(summands->name),
                      ", which are not read. Use a file that is quantised symmetrically"));
  CodedLevels::Parts parts;
  const TensorView& scales = matrix.sibling_at("weight_s_rel");
  parts.size = matrix.number("group_size", 16);
  if (parts.size < 1 || parts.size > 2 * matrix.row_bytes() || scales.shape.size() != 2 ||
      scales.shape[1] > 2 * matrix.row_bytes() / parts.size)
    matrix.refuse(Code::invalid_argument,
                  cat("has scales (", join(scales.shape, ", "), ") for groups of ", parts.size,
                      "; a row of scales is wanted for each row"));
  // Bits are known by how many numbers the scales are for.
  parts.columns = scales.shape[1] * parts.size;
  const bool is_wide = matrix.row_bytes() * 4 == parts.columns * 3;
  if ((!is_wide && matrix.row_bytes() * 2 != parts.columns) || parts.columns % 4 != 0)
    matrix.refuse(Code::invalid_argument,
                  cat("has scales for ", parts.columns,
                      " numbers of a row, which have 4 or 6 bits each and do not fill it"));
  parts.bits = is_wide ? 6 : 4;
  parts.scales = matrix
                     .scales("weight_s_rel", {DType::f8_e4m3, DType::u8, DType::f32},
                             matrix.rows() * scales.shape[1])
                     .data;
  if (scales.dtype == DType::f32) parts.type = DType::f32;
  parts.channels = matrix.scales("weight_s_channel", {DType::f32}, matrix.rows()).data;
  parts.rotated = matrix.rotated_group(parts.columns);
  if (matrix.sibling("weight_codebook") != nullptr) {
    if (is_wide)
      matrix.refuse(Code::invalid_argument, "has levels for numbers of 6 bits, which have none");
    parts.levels.resize(16);
    to_floats(DType::f32, matrix.scales("weight_codebook", {DType::f32}, 16).data,
              parts.levels.data());
  }
  const std::int64_t columns = parts.columns;
  return {std::make_shared<CodedLevels>(std::move(parts)), columns};
}

}  // namespace heddle::engine
