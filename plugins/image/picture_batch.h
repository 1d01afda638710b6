// The pictures of an IMAGE, in 8 bits. One call's thread.
#pragma once

#include <heddle/node.hpp>
#include <memory_resource>

#include "plugins/blocks/saved_files.h"
#include "plugins/image/picture.h"

namespace heddle::image {

// Refuses what is no IMAGE (batch, height, width, 1 to 4 channels) of f32.
void check_images(const Tensor& images);

// REQUIRES: an IMAGE.
inline blocks::PixelSize size_of(const Tensor& images) { return {images.size(2), images.size(1)}; }

// Picture `index` in 8 bits; warns of numbers that are none. Taken from `memory`.
Picture picture_of(Context& ctx, const Tensor& images, std::int64_t index,
                   std::pmr::memory_resource& memory);

}  // namespace heddle::image
