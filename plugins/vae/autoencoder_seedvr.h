// plugins/vae/autoencoder_seedvr.h - the causal autoencoder of SeedVR2: two families, one for each
// side, of single pictures and, in stages, of videos. A cell of the latent is 8 x 8 pixels of four
// frames, the first one of a single frame. Source of the architecture: the publisher's, by whose
// names ComfyUI's file has its tensors.
//
// "vae.decoder"  input z (B, C, h, w) loop-invariant, the latents of pictures in the autoencoder's
//                units -> image (B, 8 h, 8 w, 3) f32, about [-1, 1], not clamped
// "vae.encoder"  input image (B, H, W, 3) loop-invariant, in [-1, 1]; H and W multiples of 8
//                -> mean, logvar (B, C, H/8, W/8) f32
//
// Videos go by chunks, as those of Wan 2.1 (autoencoder_wan_video.h tells of configurations, inputs
// and outputs): the first chunk is one frame, later ones are one frame of the latent, four of the
// video; each level is a stage, with what its convolutions keep. Norms and attention see one frame
// each, so that this gives the same numbers as a whole video.
//
// Settings: family, latent_channels, downscale, pixel_channels, scaling_factor (the config's, else
// the published one), chunk_configs, frame_downscale; of a stage chunk_shapes. Stateless, any
// thread.
#pragma once

#include "seedvr_vae_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

// What latents are multiplied with for the denoiser, as published.
inline constexpr double kSeedvrScale = 0.9152;

struct AutoencoderSeedvrDecoder {
  static constexpr Family family{"autoencoder_seedvr", "vae.decoder", 1,
                                 "Causal autoencoder of SeedVR2: latent to picture"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct AutoencoderSeedvrEncoder {
  static constexpr Family family{"autoencoder_seedvr", "vae.encoder", 1,
                                 "Causal autoencoder of SeedVR2: picture to latent"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
