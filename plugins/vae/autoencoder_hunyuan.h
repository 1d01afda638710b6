// plugins/vae/autoencoder_hunyuan.h - the causal autoencoder of HunyuanVideo 1.0: two families, one
// for each side, of whole videos, as its group norms take all frames together. A cell of the latent
// is 8 x 8 pixels of four frames, the first one of a single frame. Source of the architecture:
// AutoencoderKLHunyuanVideo of diffusers, whose names are read besides those of ComfyUI's files.
//
// "vae.decoder"  input z (B, C, F, h, w) or (B, C, h, w) loop-invariant, in the autoencoder's units
//                -> image (B T, 8 h, 8 w, 3) f32, T = 4 F - 3, about [-1, 1], not clamped
// "vae.encoder"  input image (T, H, W, 3) loop-invariant, one video, in [-1, 1]; T is 4 n + 1, H
//                and W multiples of 8 -> mean, logvar (1, C, F, h, w) f32
//
// Settings: family, latent_channels, downscale, frame_downscale, pixel_channels, scaling_factor
// (the config's, else the published one), shift_factor. Stateless, any thread.
#pragma once

#include "hunyuan_vae_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

struct AutoencoderHunyuanDecoder {
  static constexpr Family family{"autoencoder_hunyuan", "vae.decoder", 1,
                                 "Causal autoencoder of HunyuanVideo 1.0: latent to video"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct AutoencoderHunyuanEncoder {
  static constexpr Family family{"autoencoder_hunyuan", "vae.encoder", 1,
                                 "Causal autoencoder of HunyuanVideo 1.0: video to latent"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
