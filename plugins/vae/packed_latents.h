// plugins/vae/packed_latents.h - the latents of FLUX.2's autoencoder: 2x2 pixels of the
// autoencoder's own latent, of all channels, are one cell, normalised by the statistics of a batch
// norm (per channel, without a learned scale). Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

inline constexpr std::int64_t kLatentPack = 2;  // pixels along each side of a cell

// z (B, 4 C, h, w), normalised -> (B, C, 2 h, 2 w) f32, the autoencoder's own latent.
struct VaeUnpackLatent {
  static constexpr Info info{"vae.unpack_latent", 1,  "VAE latent unpacking",
                             "blocks/vae",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-4}};
  static constexpr Weight mean{"mean"};
  static constexpr Weight variance{"variance"};
  static constexpr Output<Tensor> out{"z"};
  static constexpr auto ports = heddle::ports(z, eps, mean, variance, out);
  static void execute(Context& ctx);
};

// mean (B, C, 2 h, 2 w) -> (B, 4 C, h, w) f32, normalised. An odd side loses its last pixel.
struct VaePackLatent {
  static constexpr Info info{"vae.pack_latent", 1,  "VAE latent packing",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> latent{"latent"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-4}};
  static constexpr Weight mean{"mean"};
  static constexpr Weight variance{"variance"};
  static constexpr Output<Tensor> out{"latent"};
  static constexpr auto ports = heddle::ports(latent, eps, mean, variance, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
