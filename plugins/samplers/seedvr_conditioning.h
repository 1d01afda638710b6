// SeedVR2Conditioning: what SeedVR2 is told of a latent that it makes sharper. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct SeedVR2Conditioning {
  static constexpr Info info{"SeedVR2Conditioning", 1, "Apply SeedVR2 Conditioning",
                             "model/conditioning",
                             "The texts that the model's file brings, and the latent that it makes "
                             "sharper, which the sampler is given, too."};
  static constexpr Input<Value> model{"model", 0, "", "MODEL"};
  static constexpr Input<Value> vae_conditioning{
      "vae_conditioning", Widget{.extra = R"({"display_name": "latent"})", .type = "LATENT"}};
  static constexpr Output<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative{"negative", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(model, vae_conditioning, positive, negative);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
