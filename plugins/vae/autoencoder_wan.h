// plugins/vae/autoencoder_wan.h - the causal autoencoder of Wan 2.1, which Qwen-Image uses, too, on
// single pictures: two families, one for each side; autoencoder_wan_video.h is about videos. Its
// filters reach over three frames, this one
// and the two before it; before a single frame there is nothing, so of each filter the last frame's
// part is all that counts, and the convolutions between frames ("time_conv") have nothing to do.
// That of Qwen-Image-Layered is the same with pictures that have alpha. That of Wan 2.2 has a
// shortcut around each level and takes squares of 2x2 pixels as one, so a factor of 16. That of
// Qwen-Image 2.1 has filters of one frame, a shortcut around each level, a factor of 16 and
// pictures with alpha (P = 4, else 3).
//
// "vae.decoder"  input z (B, C, h, w) loop-invariant, the latent in the autoencoder's own units
//                -> image (B, 8 h, 8 w, P) f32, about [-1, 1], not clamped
// "vae.encoder"  input image (B, H, W, P) loop-invariant, in [-1, 1]
//                -> mean, logvar (B, C, H/8, W/8) f32
//
// Settings: family, latent_channels, downscale, pixel_channels; latent_means and latent_deviations
// (latent of the diffusion model = (z - mean) / deviation of each channel) from the config's
// latents_mean and latents_std, without one those that were published, for 16 and 64 channels.
// Stateless, any thread.
#pragma once

#include "autoencoder_wan_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

struct AutoencoderWanDecoder {
  static constexpr Family family{"autoencoder_wan", "vae.decoder", 1,
                                 "Causal autoencoder of Wan 2.1 and Qwen-Image: latent to picture"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct AutoencoderWanEncoder {
  static constexpr Family family{"autoencoder_wan", "vae.encoder", 1,
                                 "Causal autoencoder of Wan 2.1 and Qwen-Image: picture to latent"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
