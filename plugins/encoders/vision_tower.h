// Pictures that a vision tower of CLIP or SigLIP sees, as CLIPVisionEncode shows them: each side as
// long as the tower's, by cubic convolution with antialiasing, in 256 levels. One call's thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <heddle/model.hpp>
#include <heddle/node.hpp>

namespace heddle::encoders {

// A CLIP_VISION_OUTPUT (heddle/diffusion/values.h) of pictures (B, H, W, 3 or more). `is_cut`: from
// the middle of each, not the whole of it pressed into a square. `mask`, optional: (1 or n, H, W),
// of which the first is what the tower sees: the middle of it, in the tower's size.
Value seen_by_tower(Context& ctx, const Value& tower, const Tensor& image, bool is_cut,
                    const Tensor& mask = {});
// Pictures as a tower with these settings reads them: (B, size, size, 3) on the call's device.
Tensor tower_pixels(Context& ctx, const Tensor& image, const Value& settings, bool is_cut,
                    const Tensor& mask = {});
// The host memory that this takes.
std::uint64_t tower_bytes(const Shape& image, std::int64_t size, bool is_cut);
// Tells of that call before a run. Fields of the result with their shapes, all f32.
std::vector<std::pair<std::string, Shape>> tell_tower(Infer& question, const Value& tower,
                                                      const Shape& image, bool is_cut);

}  // namespace heddle::encoders
