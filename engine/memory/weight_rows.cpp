#include "engine/memory/weight_rows.h"

#include <algorithm>
#include <iterator>

#include "engine/tensor/dtype.h"
#include "engine/tensor/host_memory.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/node.h"

namespace heddle::engine {

namespace {

std::int64_t row_bytes(const WeightSource::Part& part) {
  return dtype_bytes(part.tensor->dtype, elements_below(*part.tensor, 1));
}

// So that each group begins on a device where memory may be given: at a multiple of 256 bytes,
// also in half of the bytes.
constexpr std::int64_t kRowAlignment = 512;

// Of types that a device converts number by number.
bool is_plain(const WeightSource& source) {
  const auto is_matrix = [](const WeightSource::Part& part) {
    const DType dtype = part.tensor->dtype;
    return part.tensor->shape.size() == 2 && part.tensor->packed == nullptr &&
           (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) &&
           row_bytes(part) % kRowAlignment == 0;
  };
  return source.device_use() != HEDDLE_USE_LINEAR_FP8 && !is_made(source) &&
         std::ranges::all_of(source.parts, is_matrix);
}

}  // namespace

std::vector<WeightSource> row_groups(const WeightSource& source, const DeviceState& state) {
  const HostWeights* const host = state.host_weights();
  const Device& device = state.device();
  if (host == nullptr || device.host_visible() || !device.has_pinned() || !is_plain(source))
    return {source};
  const auto most = std::int64_t(host->group_bytes());
  std::int64_t bytes = 0;
  for (const WeightSource::Part& part : source.parts)
    bytes += (part.end - part.begin) * row_bytes(part);
  if (bytes <= most) return {source};
  std::vector<WeightSource> groups;
  for (const WeightSource::Part& part : source.parts) {
    const std::int64_t rows = part.end - part.begin;
    const std::int64_t fit =
        std::max<std::int64_t>(1, most / std::max(kRowAlignment, row_bytes(part)));
    const std::int64_t count = (rows + fit - 1) / fit;
    for (std::int64_t i = 0; i < count; ++i) {  // of about the same size
      WeightSource& group = groups.emplace_back(source);
      group.parts = {
          {part.tensor, part.begin + rows * i / count, part.begin + rows * (i + 1) / count}};
    }
  }
  return groups;
}

std::vector<FilePart> loaded_parts(const WeightSource& source, const DeviceState& state) {
  std::vector<FilePart> parts;
  for (const WeightSource& group : row_groups(source, state))
    std::ranges::move(file_parts(group), std::back_inserter(parts));
  return parts;
}

bool are_rows(const heddle_weight_layout& whole, const std::vector<heddle_weight_layout>& groups) {
  const auto is_dense = [&](const heddle_weight_layout& layout) {
    const heddle_tensor_info& info = layout.info;
    return info.layout == 0 && info.dtype == whole.info.dtype && info.rank == 2 &&
           layout.bytes == dense_bytes(info);
  };
  std::uint64_t bytes = 0;
  for (const heddle_weight_layout& group : groups) bytes += group.bytes;
  return is_dense(whole) && bytes == whole.bytes && std::ranges::all_of(groups, is_dense);
}

}  // namespace heddle::engine
