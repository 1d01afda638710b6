// Latents in another size by directions: the channels of a cell are a vector, and between two cells
// its direction turns evenly and its length changes evenly. Along rows first, then along columns.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace heddle::samplers {

// Planes of height x width cells, `channels` of them for each of `outer`; channel c of an outer
// begins c * inner planes behind its first, where inner planes belong together (frames).
struct CellGrid {
  std::int64_t outer, channels, inner, height, width;
};

// ComfyUI's bislerp: the sizes and weights of PyTorch's bilinear interpolation, great circles
// between the cells. Writes outer x channels x inner x height x width numbers. before_row is called
// now and then; what it throws leaves the result half made.
void bislerp(const float* from, const CellGrid& grid, std::int64_t height, std::int64_t width,
             float* to, const std::function<void()>& before_row);

}  // namespace heddle::samplers
