#include "model_option_nodes.h"

namespace heddle::loaders {

void ModelComputeDtype::execute(Context& ctx) {
  if (const std::string wanted = ctx[dtype]; wanted != "default")
    log(HEDDLE_WARN, ctx.node() + ": a model computes in the type of its device, not in " + wanted +
                         ". --compute DEVICE=" +
                         (wanted == "fp32"   ? "f32"
                          : wanted == "fp16" ? "f16"
                                             : wanted) +
                         " sets it for a device.");
  ctx[out] = ctx[model];
}

}  // namespace heddle::loaders
