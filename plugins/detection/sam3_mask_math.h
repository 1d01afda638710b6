// plugins/detection/sam3_mask_math.h - what is done with masks of things in a video, logits of one
// size each: a thing is where they are above 0. As ComfyUI's tracker of SAM 3.1 does it, in the
// same order of sums where that counts. Host memory; functions only, any thread.
#pragma once

#include <memory_resource>
#include <vector>

#include "plugins/blocks/resample.h"

namespace heddle::detection {

using Floats = std::pmr::vector<float>;

// The larger of what two masks have in common of all that they cover, and of the smaller of both.
float mask_overlap(const Floats& a, const Floats& b);

// Which masks stay, best first, where each leaves out those after it that overlap it by half.
std::vector<std::size_t> apart_masks(const std::vector<Floats>& masks,
                                     const std::vector<float>& scores);

// Fills holes of at most `most` pixels, then takes away such spots, or of half the mask where that
// is less. Pixels that touch at a corner are together.
void fill_holes(Floats& mask, const blocks::GridSize& size, std::int64_t most,
                std::pmr::memory_resource& memory);

// Of two things that overlap the one that was hidden later is hidden (logits of -10). hidden_at:
// the frame at which each was hidden last, -1 for never; what is hidden or empty now gets `frame`.
void hide_overlapping(std::vector<Floats>& masks, std::vector<std::int64_t>& hidden_at,
                      std::int64_t frame);

// Which things keep three tenths of their pixels where each pixel is of the thing of most.
std::vector<bool> hold_their_own(const std::vector<Floats>& masks);

}  // namespace heddle::detection
