#include "weight_parts.h"

#include <algorithm>
#include <cstring>

#include "blocks.h"
#include "elements.h"
#include "heddle/device.hpp"
#include "number.h"
#include "walk.h"

namespace heddle::cpu {

namespace {

float scale_of(const heddle_view& part) {
  return part.scale == 0 ? 1.0f : static_cast<float>(part.scale);
}

// Elements [begin, begin + count) of neighbours in blocks; begin may lie inside of one.
void load_from_blocks(const heddle_view& part, std::int64_t begin, std::int64_t count, float* to) {
  const std::int64_t size = device::block_elements(part.info.dtype);
  float block[256];
  while (count > 0) {
    const std::int64_t skipped = begin % size, taken = std::min(size - skipped, count);
    load_blocks(part.info.dtype, element(part, begin - skipped), size, block);
    std::copy(block + skipped, block + skipped + taken, to);
    begin += taken, to += taken, count -= taken;
  }
}

}  // namespace

WeightParts::WeightParts(const heddle_tensor_info& whole, std::uint32_t count,
                         const heddle_view* const* parts) {
  std::int64_t rows = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const heddle_tensor_info& info = parts[i]->info;
    const bool fits = info.rank == whole.rank && info.layout == 0 &&
                      std::equal(info.shape + std::min(1u, info.rank), info.shape + info.rank,
                                 whole.shape + std::min(1u, info.rank));
    if (!fits)
      device::fail(HEDDLE_INVALID_ARGUMENT, "part ", i, " is ", device::describe(info),
                   ", which is no part of ", device::describe(whole));
    if (device::is_float(info.dtype) != device::is_float(whole.dtype))
      device::fail(HEDDLE_INVALID_ARGUMENT, "part ", i, " is ", device::describe(info),
                   ", cannot become ", device::describe(whole),
                   ". Use a file in which both are numbers of floating point");
    if (device::is_block_format(whole.dtype) && info.dtype != whole.dtype)
      device::fail(HEDDLE_UNSUPPORTED, "part ", i, " is ", device::describe(info),
                   ", cannot become ", device::describe(whole),
                   ": nothing is put into blocks here");
    rows += info.rank == 0 ? 1 : info.shape[0];
    parts_.push_back(*parts[i]);
  }
  const std::int64_t expected = whole.rank == 0 ? 1 : whole.shape[0];
  if (rows != expected)
    device::fail(HEDDLE_INVALID_ARGUMENT, "the ", count, " parts have ", rows, " rows, the weight ",
                 device::describe(whole), " has ", expected);
}

const heddle_view& WeightParts::part_of(std::int64_t& row) const {
  std::size_t which = 0;
  for (; parts_[which].info.rank > 0 && row >= parts_[which].info.shape[0]; ++which)
    row -= parts_[which].info.shape[0];
  return parts_[which];
}

float WeightParts::scale(std::int64_t row) const { return scale_of(part_of(row)); }

void WeightParts::read(std::int64_t row, std::int64_t begin, std::int64_t count, heddle_dtype dtype,
                       void* to) const {
  const heddle_view& part = part_of(row);
  if (part.info.rank < 2) {
    read_run(part, row * (part.info.rank == 0 ? 0 : part.info.stride[0]), 1, count, dtype, to);
    return;
  }
  // Run by run along the last axis.
  const std::int64_t width = last_size(part.info);
  std::int64_t below = 1;
  for (std::uint32_t axis = 1; axis + 1 < part.info.rank; ++axis) below *= part.info.shape[axis];
  auto* target = static_cast<std::byte*>(to);
  while (count > 0) {
    const std::int64_t line = begin / width, column = begin % width,
                       run = std::min(count, width - column);
    const std::int64_t step = last_stride(part.info);
    read_run(part, row_offset(part.info, part.info, row * below + line) + column * step, step, run,
             dtype, target);
    target += device::bytes_of(dtype, run);
    begin += run;
    count -= run;
  }
}

void WeightParts::read_run(const heddle_view& part, std::int64_t offset, std::int64_t step,
                           std::int64_t count, heddle_dtype dtype, void* to) const {
  const heddle_dtype from = part.info.dtype;
  const bool in_blocks = device::is_block_format(from);
  const float scale = device::is_f8(dtype) ? 1.0f : scale_of(part);
  auto* target = static_cast<std::byte*>(to);
  if (from == dtype && step == 1 && scale == 1.0f) {
    std::memcpy(target, element(part, offset),
                static_cast<std::size_t>(device::bytes_of(dtype, count)));
    return;
  }
  if (device::is_block_format(dtype))
    device::fail(HEDDLE_UNSUPPORTED, "a weight in blocks has a scale of its own, ", scale);
  const auto from_bytes = static_cast<std::int64_t>(device::dtype_bytes(from));
  const auto to_bytes = static_cast<std::int64_t>(device::dtype_bytes(dtype));
  const bool through_floats = (device::is_compute_float(dtype) || device::is_f8(dtype)) &&
                              (device::is_compute_float(from) || device::is_f8(from) || in_blocks);
  const std::byte* source = in_blocks ? nullptr : element(part, offset);
  if (!through_floats) {
    for (std::int64_t i = 0; i < count; ++i)
      if (from == dtype && scale == 1.0f)
        std::memcpy(target + i * to_bytes, source + i * step * from_bytes,
                    static_cast<std::size_t>(to_bytes));
      else
        store_number(dtype, load_number(from, source + i * step * from_bytes) * scale,
                     target + i * to_bytes);
    return;
  }
  constexpr std::int64_t kChunk = 256;
  float values[kChunk];
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t length = std::min(kChunk, count - done);
    if (in_blocks)
      load_from_blocks(part, offset + done, length, values);
    else
      load_row(from, source + done * step * from_bytes, length, step, values);
    if (scale != 1.0f)
      for (std::int64_t i = 0; i < length; ++i) values[i] *= scale;
    store_row(dtype, values, length, 1, target + done * to_bytes);
  }
}

}  // namespace heddle::cpu
