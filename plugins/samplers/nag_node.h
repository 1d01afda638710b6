// NAGuidance: it adds a record to a model's settings, nothing else. On the host; stateless.
#pragma once

#include "patch_nodes.h"

namespace heddle::samplers {

// Normalized Attention Guidance (arXiv 2505.21179). The sampler calls the model with pairs of a
// positive and a negative conditioning (attention_pairs.h), also at cfg 1, and the model's blocks
// guide the picture's tokens in every attention. It works with FLUX and Qwen-Image. Both
// conditionings of a pair have to have as many tokens, and the same area, hooks and model; where
// they have not, they are seen apart and a warning says so. ComfyUI guides the first positive entry
// of several; this one guides each.
struct NAGuidance {
  static constexpr Info info{"NAGuidance",
                             1,
                             "Normalized Attention Guidance",
                             "advanced/guidance",
                             "Attention of the picture led away from what it sees by the negative "
                             "conditioning; it works at cfg 1, too. FLUX, Chroma and Qwen-Image; "
                             "positive and negative text have to have as many tokens.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> nag_scale{"nag_scale", Widget{.number = 5, .max = 50, .step = 0.1},
                                           "How far the attention is led away; 1 not at all."};
  static constexpr Input<double> nag_alpha{"nag_alpha",
                                           Widget{.number = 0.5, .max = 1, .step = 0.01},
                                           "How much of the result is guided."};
  static constexpr Input<double> nag_tau{
      "nag_tau", Widget{.number = 1.5, .min = 1, .max = 10, .step = 0.01},
      "By how much guided attention may be larger than unguided."};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, nag_scale, nag_alpha, nag_tau, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
