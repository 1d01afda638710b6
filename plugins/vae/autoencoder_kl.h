// plugins/vae/autoencoder_kl.h - the KL autoencoder of Stable Diffusion, SDXL, SD3, FLUX.1 and
// FLUX.2 (also with its small decoder), and of Stable Video Diffusion: two families, one for each
// side, because a workflow that draws needs no encoder.
//
// "vae.decoder"  input z (B, C, h, w) loop-invariant, the unscaled latent
//                -> image (B, 8 h, 8 w, 3) f32, about [-1, 1], not clamped
// "vae.encoder"  input image (B, H, W, 3) loop-invariant, in [-1, 1]
//                -> mean, logvar (B, C, H/8, W/8) f32
// A decoder that mixes frames (Stable Video Diffusion's) takes the B frames of one video, which are
// then no batch: it is not cut along them.
// In FLUX.2's, z and mean are packed and normalised: (B, 4 C, H/16, W/16); logvar is not.
//
// Settings: family, scaling_factor and shift_factor (latent of the diffusion model = (z - shift) *
// scaling), from the config, else from the file's metadata, else 1 and 0 for FLUX.2's,
// FLUX.1's for 16 channels and Stable Diffusion's for others; latent_channels; downscale.
// Stateless, any thread.
#pragma once

#include "autoencoder_kl_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

struct AutoencoderKlDecoder {
  static constexpr Family family{"autoencoder_kl", "vae.decoder", 1,
                                 "KL autoencoder: latent to picture"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct AutoencoderKlEncoder {
  static constexpr Family family{"autoencoder_kl", "vae.encoder", 1,
                                 "KL autoencoder: picture to latent"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
