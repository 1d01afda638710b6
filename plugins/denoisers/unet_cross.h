// Transformers whose first attention sees the text, too, in place of the picture's own tokens:
// those of the larger pictures in Stable Diffusion's x4 upscaler. That attention stands in blocks
// of its own. Used while a model is built; one call's thread.
#pragma once

#include <heddle/model.hpp>

#include "unet_self.h"

namespace heddle::denoisers {

// Whether its keys are made of texts, which are `context` wide. Of tokens that are as wide as texts
// they are not: files do not say it, and the published ones have it so.
bool reads_text_twice(const UnetSelfPlace& place, std::int64_t context);
// Adds its blocks, and gives what is attended to. text: (1|B, T, width).
Source add_cross_blocks(const UnetSelfPlace& place, const Source& text, std::int64_t width,
                        Blocks& graph);

}  // namespace heddle::denoisers
