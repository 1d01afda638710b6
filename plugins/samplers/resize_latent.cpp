#include "resize_latent.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "bislerp.h"

namespace heddle::samplers {

using blocks::Grids;
using blocks::GridSize;

Grids grids_of(const Shape& shape) {
  if (shape.size() < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT, "samples: a latent has at least 3 axes, this has " +
                                             std::to_string(shape.size()) + ". Link a LATENT.");
  Grids grids{1, {shape[shape.size() - 2], shape.back()}, 1};
  for (std::size_t axis = 0; axis + 2 < shape.size(); ++axis) grids.outer *= shape[axis];
  return grids;
}

Shape resized_shape(Shape shape, const GridSize& to) {
  shape[shape.size() - 2] = to.height;
  shape.back() = to.width;
  return shape;
}

GridSize size_by(const GridSize& from, double factor) {
  return {blocks::rounded(double(from.height) * factor),
          blocks::rounded(double(from.width) * factor)};
}

GridSize size_for(const GridSize& from, std::int64_t width, std::int64_t height,
                  std::int64_t downscale) {
  static constexpr std::int64_t kLeastSide = 64;  // pixels
  const auto other = [](std::int64_t side, std::int64_t known, std::int64_t of) {
    return std::max(kLeastSide, blocks::rounded(double(side) * double(known) / double(of)));
  };
  const std::int64_t w = std::max(width, kLeastSide), h = std::max(height, kLeastSide);
  if (width == 0) return {h / downscale, other(from.width, h, from.height) / downscale};
  if (height == 0) return {other(from.height, w, from.width) / downscale, w / downscale};
  return {h / downscale, w / downscale};
}

namespace {

// REQUIRES: the axes are (B, C, ..., H, W). What a crop leaves lies with gaps: it is copied first.
void bislerp_whole(const blocks::Source& cells, const Shape& shape, const GridSize& to, float* out,
                   const std::function<void()>& before_row) {
  const auto& [outer, size, inner] = cells.grids;
  std::vector<float> dense;
  dense.reserve(std::size_t(outer * size.height * size.width));
  for (std::int64_t plane = 0; plane < outer; ++plane)
    for (std::int64_t y = 0; y < size.height; ++y)
      dense.insert(dense.end(), cells.row(plane, y), cells.row(plane, y) + size.width);
  const std::int64_t channels = shape.size() > 3 ? shape[1] : shape[0];
  const std::int64_t items = shape.size() > 3 ? shape[0] : 1;
  bislerp(dense.data(), {items, channels, outer / (items * channels), size.height, size.width},
          to.height, to.width, out, before_row);
}

}  // namespace

void resize_latent(Context& ctx, const float* from, const Shape& shape, const LatentResize& how,
                   float* to, std::pmr::memory_resource& memory) {
  const Grids grids = grids_of(shape);
  if (how.to.height < 1 || how.to.width < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT, "samples: " + std::to_string(grids.size.width) + " x " +
                                             std::to_string(grids.size.height) +
                                             " cells would become " + std::to_string(how.to.width) +
                                             " x " + std::to_string(how.to.height) +
                                             ". Ask for at least one cell.");
  blocks::Source cells = blocks::Source::of(from, grids);
  if (how.crop) cells = blocks::centre_cropped(cells, how.to);
  const auto before_row = [&] {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
  };
  if (const auto method = blocks::resampling_named(how.method))
    blocks::resample(cells, how.to, *method, to, memory, before_row);
  else
    bislerp_whole(cells, shape, how.to, to, before_row);
}

}  // namespace heddle::samplers
