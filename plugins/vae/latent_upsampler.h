// plugins/vae/latent_upsampler.h - models that make latents of LTX-Video and LTX 2 larger: of twice
// or one and a half times the sides, or of twice the frames.
//
// "latent_upscaler"  input z (B, C, F, h, w) loop-invariant, in the autoencoder's units -> larger
//                    (B, C, F', h', w') f32
//
// Settings: family, latent_channels, times and step (h' = (times h - 1) / step + 1), frame_times (1
// or 2; F' = frame_times (F - 1) + 1). Stateless, any thread.
#pragma once

#include "latent_upsampler_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

struct LatentUpsampler {
  static constexpr Family family{"ltxv_latent_upsampler", "latent_upscaler", 1,
                                 "Upsampler of latents of LTX-Video"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
