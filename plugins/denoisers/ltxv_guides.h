// plugins/denoisers/ltxv_guides.h - where frames stand that a video of LTX-Video passes
// (LTXVAddGuide): behind its own in the latent, at pictures of the video that are told. Used in
// blocks, as they are traced; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// Puts the places of the last K frames of `frames` into the first column of ids (L, 3), those of
// the tokens of all of them. guides (K, 2) f32: the pictures at which each begins and ends; a frame
// stands where it begins, or, `in_middle`, halfway. Throws where there are more of them.
void put_guides(Context& ctx, const Tensor& guides, const Tensor& ids, std::int64_t frames,
                bool in_middle);

}  // namespace heddle::denoisers
