// The mask of a guide (LTXVAddGuide's attention_mask) in the cells of the guide's latent. One
// call's thread.
#pragma once

#include <cstdint>
#include <span>

#include <heddle/node.hpp>

namespace heddle::samplers {

struct MaskCells {
  std::int64_t frames = 1, rows = 1, columns = 1;
};

// The mean of a MASK (pictures, height, width) over each cell, into `to`, frame by frame. As in
// ComfyUI the first frame is that of the first picture; the others are of as many pictures each, a
// rest is left out, and where there are fewer pictures than frames they are repeated. Throws where
// it is no MASK.
void put_cell_means(Context& ctx, const Tensor& mask, const MaskCells& cells, std::span<float> to);

}  // namespace heddle::samplers
