// plugins/vae/autoencoder_ltxv.h - the autoencoders of LTX-Video 0.9 (0.9.0, 0.9.1, 0.9.5 and
// later) and of LTX 2: two families, one for each side. A cell of the latent is 32 x 32 pixels of
// eight frames, the first one of a single frame. Sources of the architectures:
// AutoencoderKLLTXVideo and AutoencoderKLLTX2Video of diffusers, by the publishers of the models.
// Which blocks a side has follows from names and shapes, the rest is told
// (autoencoder_ltxv_options.h).
//
// "vae.decoder"  input z (B, C, F, h, w) or (B, C, h, w) loop-invariant, in the diffusion model's
//                units -> image (B T, 32 h, 32 w, 3) f32, T = 8 F - 7, about [-1, 1], not clamped.
//                Optional, where the setting noise_planes is a list: noise, of z's shape, of which
//                z is given a share, and noise.0, noise.1, ... (n, h 2^i, w 2^i), n the list's
//                number i, 0 where there is no such input. All are drawn by whoever calls.
// "vae.encoder"  input image (T, H, W, 3) loop-invariant, one video, in [-1, 1]; T is 8 n + 1, H
//                and W multiples of 32 -> mean (1, C, F, h, w) f32 in the diffusion model's units,
//                logvar (1, 1, F, h, w) f32
//
// Mean and deviation of each channel are in the file, and applied inside. Settings: family,
// latent_channels, downscale (32), frame_downscale (8), pixel_channels, noise_planes,
// statistics_means and statistics_deviations (lists). Stateless, any thread.
#pragma once

#include "autoencoder_ltxv_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

struct AutoencoderLtxvDecoder {
  static constexpr Family family{"autoencoder_ltxv", "vae.decoder", 2,
                                 "Autoencoder of LTX-Video: latent to video"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct AutoencoderLtxvEncoder {
  static constexpr Family family{"autoencoder_ltxv", "vae.encoder", 2,
                                 "Autoencoder of LTX-Video: video to latent"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
