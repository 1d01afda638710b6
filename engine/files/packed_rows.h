// Matrices that ComfyUI's quantised files hold in 8 bits, as numbers: format "int8_tensorwise" of
// the "comfy_quant" that stands beside each of them, with one scale or one for each row, and with
// rows that were rotated before they were rounded ("convrot").
//
// A rotated row is cut into groups of so many numbers, and each group g is stored as g H, where H
// is the regular Hadamard matrix of that order over the square root of it: the Kronecker product
// of [1 1 1 -1; 1 1 -1 1; 1 -1 1 1; -1 1 1 1] with itself. H is symmetric and its own inverse, so
// that reading multiplies with it once more (https://arxiv.org/abs/2512.03673).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/tensor/dtype.h"

namespace heddle::engine {

struct TensorView;

struct PackedRows {
  std::span<const std::byte> scales;  // f32, little-endian: one, or one for each row
  std::int64_t group = 0;             // numbers that are rotated together; 0: none are
  // The block format that holds the same numbers, i8_scaled or i8_rotated; nothing where rows are
  // no whole number of its blocks, or rotated in others.
  std::optional<DType> blocks = {};

  // `row`: as many i8 as numbers. Any thread.
  void widen(std::int64_t row, std::span<const std::byte> from, float* to) const;

  // Writes neighbouring numbers of a row as `blocks`. REQUIRES: it has a value; whole blocks.
  void to_blocks(std::int64_t row, std::span<const std::byte> from, std::byte* to) const;

 private:
  float scale_of(std::int64_t row) const;
};

// Multiplies with H, in place, without its factor of 1 / sqrt(group). REQUIRES: a power of 4.
void rotate_group(float* numbers, std::int64_t group);

// Tells the matrices in 8 bits among a file's tensors how they are read. `views`: sorted by name.
// `metadata`: the file's own entry "_quantization_metadata", which some files have instead of
// tensors; or nothing. Throws unsupported, with the path, for formats that are not known, and
// invalid_argument for scales and groups that do not suit their matrix.
void attach_packed_rows(std::vector<TensorView>& views, std::optional<std::string_view> metadata,
                        const std::filesystem::path& path);

}  // namespace heddle::engine
