#include "weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "heddle/abi/node.h"
#include "heddle/device.hpp"
#include "layouts.h"
#include "plugins/blocks/linear_int8.h"
#include "weight_parts.h"

namespace heddle::cpu {

namespace {

// What a file's type becomes where kernels read it element by element. Matrices and tables stay in
// their blocks, which are widened whenever they are read.
heddle_dtype plain_dtype(const Device& device, std::int32_t use, const heddle_tensor_info& info) {
  const heddle_dtype file = info.dtype;
  if (!device::is_float(file)) return file;
  if (use == HEDDLE_USE_VECTOR) return HEDDLE_F32;
  if (device::is_block_format(file) && info.rank == 2 && use != HEDDLE_USE_CONV2D) return file;
  if (use == HEDDLE_USE_LINEAR || use == HEDDLE_USE_CONV2D) return device.settings().compute;
  if (device::is_compute_float(file)) return file;
  return device::is_f8(file) ? HEDDLE_BF16 : HEDDLE_F32;  // bf16 holds every f8 value
}

// What a file's type becomes in panels: 16-bit types stay 16 bits long, and f8 matrices 8 bits, so
// that a model takes no more memory than its file. Where bf16 is multiplied, f16 becomes that, too.
heddle_dtype panel_dtype(const Device& device, std::int32_t use, heddle_dtype file) {
  if (file == HEDDLE_BF16 || (file == HEDDLE_F16 && device.settings().compute == HEDDLE_F32))
    return file;
  if (device::is_f8(file)) return use == HEDDLE_USE_LINEAR ? file : HEDDLE_BF16;
  return device.settings().compute;
}

heddle_weight_layout panel_layout(heddle_dtype dtype, const heddle_tensor_info& info) {
  heddle_weight_layout layout{};
  layout.size = sizeof layout;
  layout.info = device::row_major(dtype, info.shape, info.rank);
  const bool pairs = dtype == HEDDLE_BF16 && info.shape[1] % 2 == 0;
  layout.info.layout = info.rank == 2 ? (pairs ? kMatrixPairs : kMatrixPanels)
                                      : (pairs ? kFilterPairs : kFilterPanels);
  if (device::is_f8(dtype)) layout.info.layout = kMatrixScaled;
  layout.bytes = panel_bytes(layout.info);
  return layout;
}

heddle_weight_layout plain_layout(heddle_dtype dtype, const heddle_tensor_info& info) {
  heddle_weight_layout layout{};
  layout.size = sizeof layout;
  layout.info = device::row_major(dtype, info.shape, info.rank);
  layout.bytes = static_cast<std::uint64_t>(device::bytes_of(dtype, device::element_count(info)));
  return layout;
}

void make_plain(Stream& stream, const WeightParts& parts, const heddle_tensor_info& info,
                void* dst) {
  const std::int64_t rows = info.rank == 0 ? 1 : info.shape[0];
  const std::int64_t width = rows == 0 ? 0 : device::element_count(info) / rows;
  const std::int64_t row_bytes = device::bytes_of(info.dtype, width);
  constexpr std::int64_t kTileElements = 65536;
  const std::int64_t per_tile =
      std::max<std::int64_t>(1, kTileElements / std::max<std::int64_t>(1, width));
  stream.parallel_for((rows + per_tile - 1) / per_tile, [&](std::int64_t tile, Scratch&) {
    const std::int64_t end = std::min(rows, (tile + 1) * per_tile);
    for (std::int64_t row = tile * per_tile; row < end; ++row)
      if (width > 0)
        parts.read(row, 0, width, info.dtype, static_cast<std::byte*>(dst) + row * row_bytes);
  });
}

// One panel to a tile: its rows in the file's order, then turned to stand side by side.
void make_panels(Stream& stream, const WeightParts& parts, const heddle_tensor_info& info,
                 void* dst) {
  const std::int64_t outputs = info.shape[0], length = sum_length(info);
  const std::int64_t channels = info.shape[1], taps = channels == 0 ? 0 : length / channels;
  const std::int64_t group = is_paired(info.layout) ? 2 : 1;
  const std::size_t bytes = device::dtype_bytes(info.dtype);
  stream.parallel_for(panel_count(outputs), [&](std::int64_t panel, Scratch& scratch) {
    auto* row = scratch.take<std::byte>(static_cast<std::size_t>(length) * bytes);
    auto* to = static_cast<std::byte*>(dst) +
               static_cast<std::size_t>(panel * kPanelColumns * length) * bytes;
    for (std::int64_t column = 0; column < kPanelColumns; ++column) {
      const std::int64_t output = panel * kPanelColumns + column;
      if (output < outputs)
        parts.read(output, 0, length, info.dtype, row);
      else
        std::memset(row, 0, static_cast<std::size_t>(length) * bytes);
      // (c, tap) in the file, (tap, c) in the panel.
      const auto place = [&](std::int64_t tap, std::int64_t c) {
        const std::int64_t number = c % group;
        return (tap * channels + c - number) * kPanelColumns + column * group + number;
      };
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t tap = 0; tap < taps; ++tap)
          std::memcpy(to + static_cast<std::size_t>(place(tap, c)) * bytes,
                      row + static_cast<std::size_t>(c * taps + tap) * bytes, bytes);
      if (info.layout != kMatrixScaled) continue;
      const float scale = output < outputs ? parts.scale(output) : 1.0f;
      std::memcpy(static_cast<std::byte*>(dst) + scales_offset(info) +
                      static_cast<std::size_t>(output) * sizeof scale,
                  &scale, sizeof scale);
    }
  });
}

heddle_weight_layout blocks_layout(const heddle_tensor_info& info) {
  heddle_weight_layout layout{};
  layout.size = sizeof layout;
  layout.info = device::row_major(info.dtype, info.shape, info.rank);
  layout.info.layout = kMatrixBlocks;
  layout.bytes = panel_bytes(layout.info);
  return layout;
}

void make_blocks(Stream& stream, const WeightParts& parts, const heddle_tensor_info& info,
                 void* dst) {
  const std::int64_t outputs = info.shape[0], length = info.shape[1];
  const auto bytes = static_cast<std::size_t>(device::block_bytes(info.dtype));
  const auto row_bytes = static_cast<std::size_t>(device::bytes_of(info.dtype, length));
  stream.parallel_for(panel_count(outputs), [&](std::int64_t panel, Scratch& scratch) {
    auto* row = scratch.take<std::byte>(row_bytes);
    auto* to =
        static_cast<std::byte*>(dst) + static_cast<std::size_t>(panel * kPanelColumns) * row_bytes;
    for (std::size_t column = 0; column < kPanelColumns; ++column) {
      const std::int64_t output = panel * kPanelColumns + static_cast<std::int64_t>(column);
      if (output < outputs)
        parts.read(output, 0, length, info.dtype, row);
      else
        std::memset(row, 0, row_bytes);
      for (std::size_t at = 0; at < row_bytes; at += bytes)
        std::memcpy(to + at * kPanelColumns + column * bytes, row + at, bytes);
    }
  });
}

heddle_weight_layout int8_layout(const heddle_tensor_info& info) {
  heddle_weight_layout layout{};
  layout.size = sizeof layout;
  layout.info = device::row_major(info.dtype, info.shape, info.rank);
  layout.info.layout = kMatrixInt8;
  layout.bytes =
      int8_scales_offset(info) + static_cast<std::uint64_t>(info.shape[0]) * sizeof(float);
  return layout;
}

// The numbers of a row without its blocks' scales, of which the largest is given back.
float take_int8(const std::byte* blocks, std::int64_t length, std::int8_t* to) {
  constexpr std::int64_t kBlock = 256, kBytes = kBlock + sizeof(float);
  const auto scale_of = [&](std::int64_t block) {
    float scale = 0;
    std::memcpy(&scale, blocks + block * kBytes, sizeof scale);
    return scale;
  };
  float most = scale_of(0);
  for (std::int64_t b = 1; b < length / kBlock; ++b)
    if (std::fabs(scale_of(b)) > std::fabs(most)) most = scale_of(b);
  for (std::int64_t b = 0; b < length / kBlock; ++b, to += kBlock) {
    std::memcpy(to, blocks + b * kBytes + sizeof(float), kBlock);
    if (scale_of(b) == most) continue;
    const float by = scale_of(b) / most;
    for (std::int64_t i = 0; i < kBlock; ++i)
      to[i] = static_cast<std::int8_t>(std::nearbyint(static_cast<float>(to[i]) * by));
  }
  return most;
}

void make_int8(Stream& stream, const WeightParts& parts, const heddle_tensor_info& info,
               void* dst) {
  const std::int64_t rows = info.shape[0], length = info.shape[1];
  auto* const numbers = static_cast<std::int8_t*>(dst);
  auto* const scales = reinterpret_cast<float*>(numbers + int8_scales_offset(info));
  constexpr std::int64_t kRows = 16;
  stream.parallel_for((rows + kRows - 1) / kRows, [&](std::int64_t tile, Scratch& scratch) {
    auto* const row =
        scratch.take<std::byte>(static_cast<std::size_t>(device::bytes_of(info.dtype, length)));
    for (std::int64_t r = tile * kRows; r < std::min(rows, (tile + 1) * kRows); ++r) {
      parts.read(r, 0, length, info.dtype, row);
      scales[r] = take_int8(row, length, numbers + r * length);
    }
  });
}

}  // namespace

heddle_weight_layout weight_layout(const Device& device, std::int32_t use,
                                   const heddle_tensor_info& info) {
  // No processor multiplies numbers of 8 bits: they are stored so, as they are for cast matrices.
  if (use == HEDDLE_USE_LINEAR_FP8) use = HEDDLE_USE_LINEAR;
  if (use == HEDDLE_USE_BIAS) use = HEDDLE_USE_VECTOR;  // sums are f32, and so is what is added
  const bool matrix = use == HEDDLE_USE_LINEAR, filter = use == HEDDLE_USE_CONV2D;
  if (use != HEDDLE_USE_VECTOR && use != HEDDLE_USE_TABLE && !matrix && !filter)
    device::fail(HEDDLE_UNSUPPORTED, "a weight's use is ", use,
                 ", which this device does not know");
  const bool whole_blocks =
      info.rank == 0 || info.shape[info.rank - 1] % device::block_elements(info.dtype) == 0;
  if (info.rank > HEDDLE_MAX_RANK || device::block_bytes(info.dtype) == 0 || !whole_blocks ||
      (matrix && info.rank != 2) || (filter && info.rank != 4 && info.rank != 5) ||
      ((matrix || filter) && !device::is_float(info.dtype)))
    device::fail(HEDDLE_UNSUPPORTED, "a weight of the shape ", device::describe(info),
                 " cannot be used as ",
                 matrix   ? "the matrix of a linear op"
                 : filter ? "the filter of a convolution"
                          : "a vector or table",
                 device::is_float(info.dtype) ? "" : ". Use a file of floating-point numbers");
  if (device.settings().linear_int8 && blocks::is_int8_matrix(use, info)) return int8_layout(info);
  if ((matrix || filter) && !device.settings().reference_only)
    return matrix && device::is_block_format(info.dtype)
               ? blocks_layout(info)
               : panel_layout(panel_dtype(device, use, info.dtype), info);
  return plain_layout(plain_dtype(device, use, info), info);
}

void make_weight(Stream& stream, const heddle_weight_layout& layout, std::uint32_t part_count,
                 const heddle_view* const* parts, void* dst) {
  // On the heap: making a weight is rare, and a weight may have many parts.
  auto joined = std::make_shared<const WeightParts>(layout.info, part_count, parts);
  stream.enqueue({"make_weight", nullptr},
                 Work([joined = std::move(joined), info = layout.info, dst](Stream& on) {
                   (info.layout == kPlainLayout    ? make_plain
                    : info.layout == kMatrixBlocks ? make_blocks
                    : info.layout == kMatrixInt8   ? make_int8
                                                   : make_panels)(on, *joined, info, dst);
                 }));
}

}  // namespace heddle::cpu
