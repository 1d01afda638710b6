// FluxKVCache: a model that looks at reference pictures once in a run (reference_cache.h). On the
// host; stateless.
#pragma once

#include "patch_nodes.h"

namespace heddle::samplers {

struct FluxKVCache {
  static constexpr Info info{"FluxKVCache",
                             1,
                             "Flux KV Cache",
                             "experimental",
                             "Lets the model look at reference pictures in the first evaluation of "
                             "a run only, and keep what it made of them. For FLUX.2 klein 9B KV.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
