// LTXVLatentUpsampler: a latent of LTX-Video made larger by a model (latent_upsampler.h).
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

struct LTXVLatentUpsampler {
  static constexpr Info info{"LTXVLatentUpsampler",
                             1,
                             "",
                             "model/latent/ltxv",
                             "Makes a latent larger by a model, in the units of its autoencoder.",
                             HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<Value> upscale_model{"upscale_model", HEDDLE_PORT_PASS, "",
                                              "LATENT_UPSCALE_MODEL"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, upscale_model, vae, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
