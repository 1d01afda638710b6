// ReferenceMultiLatent: several pictures that a model is shown at once. Stateless.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/port_types.h"

namespace heddle::encoders {

struct ReferenceMultiLatent {
  static constexpr Widget kResolution{.extra = R"({"options": [
      {"key": "keep resolution", "inputs": {"required": {}}},
      {"key": "resize", "inputs": {"required": {
        "megapixels": ["FLOAT", {"default": 1.0, "min": 0.01, "max": 16.0, "step": 0.01}]}}}]})"};
  static constexpr Widget kImages{
      .extra = R"({"template": {"input": {"required": {"image": ["IMAGE", {}]}},
                   "prefix": "image", "min": 0, "max": 100}})"};

  static constexpr Info info{
      "ReferenceMultiLatent",
      1,
      "Set Reference Multi Latent",
      "model/conditioning",
      "Pictures that the model is shown, behind those that it is shown already, and an empty "
      "latent of the first one's size. Resized, they have about so many times 1024 x 1024 pixels, "
      "by areas, sides rounded to whole pixels. Without a picture the empty latent is FLUX's (128 "
      "channels, cells of 16 pixels).",
      HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> positive_in{"positive", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<blocks::Variant> resolution{"resolution", kResolution};
  static constexpr Input<blocks::Growing> images{"images", kImages};
  static constexpr Input<Value> negative_in{"negative", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL, "",
                                            "CONDITIONING"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL,
                                    "Encodes the pictures; without one they are left out.", "VAE"};
  static constexpr Output<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative{"negative", 0, "", "CONDITIONING"};
  static constexpr Output<Value> empty_latent{"empty_latent", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(positive_in, resolution, images, negative_in, vae,
                                              positive, negative, empty_latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
