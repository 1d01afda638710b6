#include "guide_masks.h"

#include <algorithm>
#include <memory_resource>
#include <vector>

#include <heddle/host_memory.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::samplers {
namespace {

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
  const auto cell_count = std::size_t(cells.rows * cells.columns);
  std::pmr::vector<float> means(cell_count * std::size_t(pictures), &memory);
  blocks::resample(blocks::Source::of(all.data(), {pictures, {height, width}, 1}),
                   {cells.rows, cells.columns}, blocks::Resampling::area, means.data(), memory);
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
