// plugins/blocks/byte_pictures.h - pictures from 0 to 1 as bytes that are resized: what a model
// sees that was trained on files of pictures. Host memory, one thread; functions only, so any
// thread may call them.
#pragma once

#include <cstdint>
#include <memory_resource>

#include "plugins/blocks/resample.h"

namespace heddle::blocks {

// Each number as a byte (255 x, clipped, truncated), in another size by cubes with antialiasing,
// rounded half to even, and from 0 to 1 again: as torchvision's resize() of pictures in uint8 has
// it (BICUBIC, antialias). Pictures that have the size already are not resized. `numbers` holds the
// grids one after another, without gaps, and is overwritten. Writes outer x to.height x to.width x
// inner numbers. As resample().
void resample_cubic_bytes(float* numbers, const Grids& grids, const GridSize& to, float* out,
                          std::pmr::memory_resource& memory, const BeforeRow& before_row = {});

}  // namespace heddle::blocks
