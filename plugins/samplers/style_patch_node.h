// USOStyleReference: FLUX.1 draws in the style of a picture (plugins/denoisers/flux_style.h). On
// the host; stateless.
#pragma once

#include "model_patch_nodes.h"

namespace heddle::samplers {

struct USOStyleReference {
  static constexpr Info info{"USOStyleReference",
                             1,
                             "USOStyleReference",
                             "advanced/model_patches/flux",
                             "A model of FLUX.1 that draws in the style of a picture, by USO's "
                             "projector. Several go one after another.",
                             model_patch_ports::kFlags};
  static constexpr Input<Value> model = model_patch_ports::model();
  static constexpr Input<Value> patch = model_patch_ports::patch();
  static constexpr Input<Value> seen{
      "clip_vision_output", 0, "What SigLIP's tower sees of one picture.", "CLIP_VISION_OUTPUT"};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, patch, seen, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
