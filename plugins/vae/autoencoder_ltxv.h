// plugins/vae/autoencoder_ltxv.h - the autoencoder of LTX-Video 0.9.0: two families, one for each
// side. A cell of the latent is 32 x 32 pixels of eight frames, the first one of a single frame.
// Decoders of 0.9.1 and later, which are told a noise level, are refused.
//
// "vae.decoder"  input z (B, C, F, h, w) or (B, C, h, w) loop-invariant, in the diffusion model's
//                units -> image (B T, 32 h, 32 w, 3) f32, T = 8 F - 7, about [-1, 1], not clamped
// "vae.encoder"  input image (T, H, W, 3) loop-invariant, one video, in [-1, 1]; T is 8 n + 1, H
//                and W multiples of 32 -> mean (1, C, F, h, w) f32 in the diffusion model's units,
//                logvar (1, 1, F, h, w) f32
//
// Mean and deviation of each channel are in the file, and applied inside. Settings: family,
// latent_channels, downscale (32), frame_downscale (8), pixel_channels. Stateless, any thread.
#pragma once

#include "autoencoder_ltxv_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

struct AutoencoderLtxvDecoder {
  static constexpr Family family{"autoencoder_ltxv", "vae.decoder", 1,
                                 "Autoencoder of LTX-Video 0.9.0: latent to video"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct AutoencoderLtxvEncoder {
  static constexpr Family family{"autoencoder_ltxv", "vae.encoder", 1,
                                 "Autoencoder of LTX-Video 0.9.0: video to latent"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
