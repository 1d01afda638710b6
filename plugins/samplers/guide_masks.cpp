#include "guide_masks.h"

#include <algorithm>
#include <memory_resource>
#include <vector>

#include <heddle/host_memory.hpp>

namespace heddle::samplers {
namespace {

// Means of a plane over cells whose borders are rounded outwards.
void put_area_means(std::span<const float> plane, std::int64_t height, std::int64_t width,
                    const MaskCells& cells, std::span<float> to) {
  const auto begin = [](std::int64_t i, std::int64_t from, std::int64_t of) {
    return i * from / of;
  };
  const auto end = [](std::int64_t i, std::int64_t from, std::int64_t of) {
    return ((i + 1) * from + of - 1) / of;
  };
  for (std::int64_t row = 0; row < cells.rows; ++row)
    for (std::int64_t column = 0; column < cells.columns; ++column) {
      double sum = 0;
      std::int64_t count = 0;
      for (std::int64_t y = begin(row, height, cells.rows); y < end(row, height, cells.rows); ++y)
        for (std::int64_t x = begin(column, width, cells.columns);
             x < end(column, width, cells.columns); ++x, ++count)
          sum += plane[std::size_t(y * width + x)];
      to[std::size_t(row * cells.columns + column)] = float(sum / double(count));
    }
}

// Pictures [first, last) that a frame behind the first one is the mean of.
struct PictureRange {
  std::int64_t first, last;
};
PictureRange pictures_of(std::int64_t frame, std::int64_t pictures, std::int64_t frames) {
  if (frame == 0 || pictures == 1) return {0, 1};
  const std::int64_t later = pictures - 1, others = frames - 1, each = later / others;
  if (each < 1) {
    const std::int64_t at = 1 + (frame - 1) * later / others;
    return {at, at + 1};
  }
  return {1 + (frame - 1) * each, 1 + frame * each};
}

}  // namespace

void put_cell_means(Context& ctx, const Tensor& mask, const MaskCells& cells, std::span<float> to) {
  if (!mask || mask.rank() < 2 || mask.rank() > 3 || mask.dtype() != HEDDLE_F32 ||
      mask.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "attention_mask: this is no f32 tensor (pictures, height, width). Link a MASK.");
  const std::int64_t pictures = mask.rank() == 3 ? mask.size(0) : 1, height = mask.size(-2),
                     width = mask.size(-1);
  HostMemory memory(ctx);
  std::pmr::vector<float> all(std::size_t(mask.count()), &memory);
  read_to<float>(ctx, mask, all);
  const auto plane = std::size_t(height * width),
             cell_count = std::size_t(cells.rows * cells.columns);
  std::pmr::vector<float> means(cell_count * std::size_t(pictures), &memory);
  for (std::size_t i = 0; i < std::size_t(pictures); ++i)
    put_area_means(std::span<const float>(all).subspan(i * plane, plane), height, width, cells,
                   std::span<float>(means).subspan(i * cell_count, cell_count));
  for (std::int64_t frame = 0; frame < cells.frames; ++frame) {
    const PictureRange of = pictures_of(frame, pictures, cells.frames);
    for (std::size_t i = 0; i < cell_count; ++i) {
      double sum = 0;
      for (std::int64_t picture = of.first; picture < of.last; ++picture)
        sum += means[std::size_t(picture) * cell_count + i];
      to[std::size_t(frame) * cell_count + i] = float(sum / double(of.last - of.first));
    }
  }
}

}  // namespace heddle::samplers
