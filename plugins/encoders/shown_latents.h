// Pictures that a diffusion model is shown, as latents. One call's thread.
#pragma once

#include <optional>
#include <vector>

#include <heddle/node.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::encoders {

// A LATENT of pictures (B, H, W, C) f32 in host memory, as reference_latents have it. Throws where
// the VAE has no encoder of pictures, or a picture is less than one of its cells.
Value shown_latent(Context& ctx, const Value& vae, const Tensor& pictures);

// The shape of such a latent of `items` pictures, and the call that makes it; none: not known.
std::optional<Shape> infer_shown(Infer& question, const Value& vae, std::int64_t items,
                                 const blocks::GridSize& size);

// A CONDITIONING with these latents behind those that its entries are shown already.
Value with_shown(const Value& list, const std::vector<Value>& shown);

}  // namespace heddle::encoders
