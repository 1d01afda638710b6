#include "weight_parts.h"

#include <algorithm>
#include <cstring>

#include "elements.h"
#include "heddle/device.hpp"
#include "number.h"
#include "walk.h"

namespace heddle::cpu {

namespace {

bool is_f8(heddle_dtype dtype) { return dtype == HEDDLE_F8_E4M3 || dtype == HEDDLE_F8_E5M2; }

}  // namespace

WeightParts::WeightParts(const heddle_tensor_info& whole, std::uint32_t count,
                         const heddle_view* const* parts) {
  std::int64_t rows = 0;
  heddle_dtype f8 = 0;
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
                   ", cannot become ", device::describe(whole));
    if (is_f8(info.dtype)) {
      if (f8 != 0 && f8 != info.dtype)
        device::fail(HEDDLE_UNSUPPORTED, "the parts are of both f8_e4m3 and f8_e5m2");
      f8 = info.dtype;
    }
    rows += info.rank == 0 ? 1 : info.shape[0];
    parts_.push_back(*parts[i]);
  }
  const std::int64_t expected = whole.rank == 0 ? 1 : whole.shape[0];
  if (rows != expected)
    device::fail(HEDDLE_INVALID_ARGUMENT, "the ", count, " parts have ", rows, " rows, the weight ",
                 device::describe(whole), " has ", expected);
  for (unsigned bits = 0; f8 != 0 && bits < 256; ++bits) {
    const auto byte = static_cast<std::uint8_t>(bits);
    bytes_as_floats_[bits] = static_cast<float>(load_number(f8, &byte));
  }
}

void WeightParts::read(std::int64_t row, std::int64_t begin, std::int64_t count, heddle_dtype dtype,
                       void* to) const {
  std::size_t which = 0;
  for (; parts_[which].info.rank > 0 && row >= parts_[which].info.shape[0]; ++which)
    row -= parts_[which].info.shape[0];
  const heddle_view& part = parts_[which];
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
    target += run * static_cast<std::int64_t>(device::dtype_bytes(dtype));
    begin += run;
    count -= run;
  }
}

void WeightParts::read_run(const heddle_view& part, std::int64_t offset, std::int64_t step,
                           std::int64_t count, heddle_dtype dtype, void* to) const {
  const heddle_dtype from = part.info.dtype;
  const auto from_bytes = static_cast<std::int64_t>(device::dtype_bytes(from));
  const auto to_bytes = static_cast<std::int64_t>(device::dtype_bytes(dtype));
  const std::byte* source = element(part, offset);
  auto* target = static_cast<std::byte*>(to);
  if (from == dtype && step == 1) {
    std::memcpy(target, source, static_cast<std::size_t>(count * to_bytes));
    return;
  }
  if (from == dtype) {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(target + i * to_bytes, source + i * step * from_bytes,
                  static_cast<std::size_t>(to_bytes));
    return;
  }
  const bool through_floats =
      device::is_compute_float(dtype) && (device::is_compute_float(from) || is_f8(from));
  if (!through_floats) {
    for (std::int64_t i = 0; i < count; ++i)
      store_number(dtype, load_number(from, source + i * step * from_bytes), target + i * to_bytes);
    return;
  }
  constexpr std::int64_t kChunk = 256;
  float values[kChunk];
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t length = std::min(kChunk, count - done);
    const std::byte* begin = source + done * step * from_bytes;
    if (is_f8(from))
      for (std::int64_t i = 0; i < length; ++i)
        values[i] = bytes_as_floats_[static_cast<std::uint8_t>(begin[i * step])];
    else
      load_row(from, begin, length, step, values);
    store_row(dtype, values, length, 1, target + done * to_bytes);
  }
}

}  // namespace heddle::cpu
