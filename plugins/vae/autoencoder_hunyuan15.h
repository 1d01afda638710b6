// plugins/vae/autoencoder_hunyuan15.h - the causal autoencoder of HunyuanVideo 1.5: two families,
// one for each side, of single pictures and, in stages, of videos. Source of the architecture:
// AutoencoderKLHunyuanVideo15 of diffusers, whose names are read besides those of the publisher's
// and ComfyUI's files.
//
// "vae.decoder"  input z (B, C, h, w) loop-invariant, the latents of pictures in the autoencoder's
//                units -> image (B, 16 h, 16 w, 3) f32, about [-1, 1], not clamped
// "vae.encoder"  input image (B, H, W, 3) loop-invariant, in [-1, 1]; H and W multiples of 16
//                -> mean, logvar (B, C, H/16, W/16) f32
//
// Videos go by chunks, as those of Wan 2.1 (autoencoder_wan_video.h tells of configurations, inputs
// and outputs): the first chunk is one frame, later ones are one frame of the latent, four of the
// video; each level is a stage, with what its convolutions keep. What the attention keeps, keys and
// values of a pixel of the latent, grows with every chunk: all frames look at all before them.
//
// Settings: family, latent_channels, downscale, pixel_channels, scaling_factor (the config's, else
// the published one), chunk_configs, frame_downscale; of a stage chunk_shapes, where a fourth
// number, 1, says that an input has so many frames for each chunk before. Stateless, any thread.
#pragma once

#include "hunyuan15_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

// What latents are multiplied with for the denoiser, as published.
inline constexpr double kHunyuan15Scale = 1.03682;

struct AutoencoderHunyuan15Decoder {
  static constexpr Family family{"autoencoder_hunyuan15", "vae.decoder", 1,
                                 "Causal autoencoder of HunyuanVideo 1.5: latent to picture"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct AutoencoderHunyuan15Encoder {
  static constexpr Family family{"autoencoder_hunyuan15", "vae.encoder", 1,
                                 "Causal autoencoder of HunyuanVideo 1.5: picture to latent"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
