// plugins/vae/taesd.h - TAESD, by the names of its own files ("taesd_decoder.safetensors": modules
// by their numbers), with or without "taesd_decoder." or "taesd_encoder." in front, and by those of
// diffusers ("decoder.layers.").
//
// "vae.decoder"  input z (B, C, h, w) loop-invariant, the unscaled latent
//                -> image (B, 8 h, 8 w, 3) f32, about [-1, 1], not clamped
// "vae.encoder"  input image (B, H, W, 3) loop-invariant, in [-1, 1] -> mean (B, C, H/8, W/8) f32
//
// The config's scaling_factor and shift_factor, else 1 and 0, are those of the latents that it was
// trained on; settings as autoencoder_kl.h has them. Stateless, any thread.
#pragma once

#include "taesd_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

struct TaesdDecoder {
  static constexpr Family family{"taesd", "vae.decoder", 1, "TAESD: latent to picture"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct TaesdEncoder {
  static constexpr Family family{"taesd", "vae.encoder", 1, "TAESD: picture to latent"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
