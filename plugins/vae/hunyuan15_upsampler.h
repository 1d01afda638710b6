// plugins/vae/hunyuan15_upsampler.h - models that make resized latents of HunyuanVideo 1.5 sharper,
// for its super resolution: to 720 lines, and to 1080.
//
// "latent_upscaler"  input z (1, C, F, h, w) loop-invariant, in the autoencoder's units -> larger,
//                    as large, f32
//
// Settings: family, latent_channels, times, step and frame_times (all 1), latent_scale (of the
// denoisers' units). Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

#include "hunyuan15_upsampler_blocks.h"

namespace heddle::vae {

struct Hunyuan15Upsampler {
  static constexpr Family family{"hunyuan15_latent_upsampler", "latent_upscaler", 1,
                                 "Upsampler of latents of HunyuanVideo 1.5"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
