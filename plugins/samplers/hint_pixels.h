// Pictures and masks in host memory, on their way into a hint. One call's thread.
#pragma once

#include <memory_resource>
#include <vector>

#include <heddle/node.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::samplers {

// Numbers of pictures (rows, height, width, colours) in host memory; of masks with one colour.
struct HintPixels {
  std::int64_t rows = 1, colours = 1;
  std::int64_t height = 0, width = 0;
  std::pmr::vector<float> values;
  bool operator==(const HintPixels&) const = default;
  blocks::GridSize size() const { return {height, width}; }
};

// Of an IMAGE, all its colours, or of a MASK. Throws where there is nothing in it.
HintPixels read_image(Context& ctx, const Tensor& image, std::pmr::memory_resource& memory);
HintPixels read_mask(Context& ctx, const Tensor& mask, std::pmr::memory_resource& memory);
// Nothing where they have this size. `crops`: first to the aspect, from the middle.
void resize(HintPixels& pixels, const blocks::GridSize& to, blocks::Resampling method,
            std::pmr::memory_resource& memory, bool crops = true);

}  // namespace heddle::samplers
