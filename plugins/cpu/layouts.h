// The private layouts of packed weights on this device. A packed weight is a row of panels: panel p
// holds 32 outputs, and for each of the K numbers that one output sums over, the 32 weights side by
// side, as f32, f16 or bf16. The last panel is filled up with zeros. K is the row of the matrix, or
// of the filter with the channels last.
//
//   linear: panel[p][k][o] = weight(32 p + o, k)
//   filter: panel[p][r][s][c][o] = weight(32 p + o, c, r, s), or [f][r][s] of one over frames
//
// In bf16, where the rows or channels are even in number, they stand in pairs, as processors
// multiply them: panel[p][k / 2][o][k % 2], panel[p][r][s][c / 2][o][c % 2]. oneDNN reads these as
// they are (BA16a32b2a, OhwI32o2i), so that its kernels and ours share a weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heddle/device.hpp"
#include "vector_kernels.h"

namespace heddle::cpu {

inline constexpr std::uint32_t kPlainLayout = 0;
inline constexpr std::uint32_t kMatrixPanels = 1;
inline constexpr std::uint32_t kFilterPanels = 2;
inline constexpr std::uint32_t kMatrixPairs = 3;
inline constexpr std::uint32_t kFilterPairs = 4;
// Panels of an f8 type, followed by an f32 for every output: what its weights are multiplied by.
inline constexpr std::uint32_t kMatrixScaled = 5;
// Panels of a block format: for every block along the row those of the 32 outputs, one after
// another as they are, so that a panel is read from its beginning to its end.
inline constexpr std::uint32_t kMatrixBlocks = 6;
// Of I8_SCALED and I8_ROTATED, multiplied as whole numbers (plugins/blocks/linear_int8.h): rows of
// i8, row-major, followed by an f32 for every row.
inline constexpr std::uint32_t kMatrixInt8 = 7;

inline bool is_matrix_layout(std::uint32_t layout) {
  return layout == kMatrixPanels || layout == kMatrixPairs || layout == kMatrixScaled ||
         layout == kMatrixBlocks;
}
inline bool is_filter_layout(std::uint32_t layout) {
  return layout == kFilterPanels || layout == kFilterPairs;
}
inline bool is_paired(std::uint32_t layout) {
  return layout == kMatrixPairs || layout == kFilterPairs;
}

inline std::int64_t panel_count(std::int64_t outputs) {
  return (outputs + kPanelColumns - 1) / kPanelColumns;
}

// Numbers that one output sums over.
inline std::int64_t sum_length(const heddle_tensor_info& weight) {
  std::int64_t length = 1;
  for (std::uint32_t axis = 1; axis < weight.rank; ++axis) length *= weight.shape[axis];
  return length;
}

// Where the scales of a kMatrixScaled weight begin: behind the panels.
inline std::uint64_t scales_offset(const heddle_tensor_info& weight) {
  return static_cast<std::uint64_t>(device::bytes_of(
      weight.dtype, panel_count(weight.shape[0]) * kPanelColumns * sum_length(weight)));
}

// Where those of a kMatrixInt8 weight begin.
inline std::uint64_t int8_scales_offset(const heddle_tensor_info& weight) {
  constexpr std::uint64_t kLine = 64;
  const auto numbers = static_cast<std::uint64_t>(weight.shape[0] * weight.shape[1]);
  return (numbers + kLine - 1) / kLine * kLine;
}

inline std::uint64_t panel_bytes(const heddle_tensor_info& weight) {
  const std::uint64_t outputs =
      static_cast<std::uint64_t>(panel_count(weight.shape[0]) * kPanelColumns);
  return scales_offset(weight) + (weight.layout == kMatrixScaled ? outputs * sizeof(float) : 0);
}

}  // namespace heddle::cpu
