// VAEDecode and VAEEncode: between LATENT and IMAGE (heddle/diffusion/values.h) by an autoencoder's
// two models. Samples that are marked `scaled` are in the denoiser's units, (raw - shift) * scale;
// decoding takes either, encoding gives scaled ones. Pictures stay on the device that made them.
// A latent of videos gives their frames as a batch, and a batch of pictures is one video, by chunks
// (video_chunks.h), where the autoencoder is one of videos.
// What finds no room to be decoded as a whole is decoded in tiles, says so, and is not cached.
#pragma once

#include <heddle/abi/parts.h>
#include <heddle/node.hpp>

namespace heddle::vae {

struct VaeDecode {
  static constexpr Info info{"VAEDecode",
                             1,
                             "VAE Decode",
                             "latent",
                             "Decodes latent pictures into pictures of pixels.",
                             HEDDLE_NODE_TILES};
  static constexpr Input<Value> samples{"samples", 0, "The latent to decode.", "LATENT"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Output<Tensor> image{"IMAGE", HEDDLE_PORT_PARTS,
                                        "(B, H, W, 3) f32, 0 to 1; 4 with alpha", "IMAGE"};
  static constexpr auto ports = heddle::ports(samples, vae, image);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct VaeEncode {
  static constexpr Info info{"VAEEncode", 1, "VAE Encode", "latent",
                             "Encodes pictures: the mean of the posterior, nothing is drawn."};
  static constexpr Input<Tensor> pixels{"pixels", 0, "(B, H, W, C) f32, 0 to 1", "IMAGE"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(pixels, vae, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
