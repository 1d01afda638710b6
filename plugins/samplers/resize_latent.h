// The numbers of a latent in another size, by ComfyUI's methods. All of them give means of cells,
// so that a latent keeps the units it has. On the host; one call's thread.
#pragma once

#include <memory_resource>
#include <string>

#include <heddle/node.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::samplers {

// The last two axes are the grid; whatever is before them is resized one by one. Throws for fewer
// than three axes.
blocks::Grids grids_of(const Shape& shape);
Shape resized_shape(Shape shape, const blocks::GridSize& to);
// ComfyUI's: rounded, halves to even.
blocks::GridSize size_by(const blocks::GridSize& from, double factor);
// For pictures of these sides, of which one may be 0: it follows from the other. `downscale`:
// pixels along a side of a cell. REQUIRES: not both are 0.
blocks::GridSize size_for(const blocks::GridSize& from, std::int64_t width, std::int64_t height,
                          std::int64_t downscale);

struct LatentResize {
  std::string method;  // of kLatentScaleMethods
  blocks::GridSize to;
  bool crop = false;  // to the aspect of `to`, from the middle
};
// Writes the numbers of resized_shape(). Throws where the new size has no cell.
void resize_latent(Context& ctx, const float* from, const Shape& shape, const LatentResize& how,
                   float* to, std::pmr::memory_resource& memory);

}  // namespace heddle::samplers
