// Matrices that ComfyUI's quantised files hold in 4, 6 or 8 bits, as numbers: the formats that the
// "comfy_quant" beside each of them names, each matrix of a file in one of its own.
//
//   int8_tensorwise  one f32 for all, or one for each row; perhaps rotated ("convrot")
//   convrot_w4a4     whole numbers of 4 bits, one f32 for each row; rotated
//   int4_tensorwise  the same, rotated where "convrot" says so
//   asym_w4a8_int8   4 bits that name a level, or whole numbers of 6 bits; a scale for each group,
//                    one f32 for each row; rotated. Files of GPTQ are of this form
//   nvfp4            floats of 4 bits, an f8_e4m3 for 16 of them, one f32 for all; perhaps a factor
//                    for each column, as AWQ makes them
//   mxfp8            f8_e4m3, a power of 2 for 32 of them
//   awq_w4a16        numbers of 4 bits, a factor and a summand for each group
//
// A rotated row is cut into groups of so many numbers, and each group g is stored as g H, where H
// is the regular Hadamard matrix of that order over the square root of it: the Kronecker product
// of [1 1 1 -1; 1 1 -1 1; 1 -1 1 1; -1 1 1 1] with itself. H is symmetric and its own inverse, so
// that reading multiplies with it once more (https://arxiv.org/abs/2512.03673).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/tensor/dtype.h"

namespace heddle::engine {

struct TensorView;

// How the rows of a matrix are read. Immutable; any thread. What it reads besides the rows belongs
// to the file that the matrix is of.
class PackedRows {
 public:
  virtual ~PackedRows() = default;

  // The block format that holds the same numbers (heddle/abi/value.h); nothing where rows are no
  // whole number of its blocks, or where none holds them.
  std::optional<DType> blocks() const { return blocks_; }

  // Of all numbers of a row, in f32. `bytes`: the whole row.
  virtual void widen(std::int64_t row, std::span<const std::byte> bytes, float* to) const = 0;

  // Writes the numbers from `begin` to `end` of a row as blocks(). `bytes`: the whole row.
  // REQUIRES: blocks() has a value; whole blocks.
  virtual void to_blocks(std::int64_t row, std::span<const std::byte> bytes, std::int64_t begin,
                         std::int64_t end, std::byte* to) const = 0;

 protected:
  std::optional<DType> blocks_ = {};
};

// Multiplies with H, in place, without its factor of 1 / sqrt(group). REQUIRES: a power of 4.
void rotate_group(float* numbers, std::int64_t group);

// Tells the packed matrices among a file's tensors how they are read, and gives them the shape that
// they have as numbers. `views`: sorted by name. `metadata`: the file's own entry
// "_quantization_metadata", which some files have instead of tensors; or nothing. Throws
// unsupported, with the path, for formats that are not known, not_found for scales that are not
// there, and invalid_argument for scales and groups that do not suit their matrix.
void attach_packed_rows(std::vector<TensorView>& views, std::optional<std::string_view> metadata,
                        const std::filesystem::path& path);

}  // namespace heddle::engine
