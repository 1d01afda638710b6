// Data sets for training: latents of pictures and conditionings of texts. On the host; stateless.
#pragma once

#include "value_types.h"

namespace heddle::loaders {

// Pictures and texts are encoded by nodes of their own.
struct MakeTrainingDataset {
  static constexpr Widget kTexts{.extra = R"({"forceInput": true, "multiline": false})",
                                 .flags = HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_LIST,
                                 .type = "STRING"};

  static constexpr Info info{"MakeTrainingDataset",
                             1,
                             "Make Training Dataset",
                             "model/training",
                             "Lists of the latents of pictures and of the conditionings of their "
                             "texts: one text for each picture, one for all, or none.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPANDS | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> images{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_LINK, "", "VAE"};
  static constexpr Input<Value> clip{"clip", HEDDLE_PORT_LINK, "", "CLIP"};
  static constexpr Input<Value> texts{"texts", kTexts};
  static constexpr Output<Value> latents{"latents", HEDDLE_PORT_LIST, "", "LATENT"};
  static constexpr Output<Value> conditioning{"conditioning", HEDDLE_PORT_LIST, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(images, vae, clip, texts, latents, conditioning);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
