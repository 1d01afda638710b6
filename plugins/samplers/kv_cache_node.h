// FluxKVCache: a model that looks at reference pictures once in a run (reference_cache.h).
// WanAnimate2Cache: a model of Wan that follows poses as Wan Animate 2 does. What its layers make
// of them is made once in a run, in the compute type. On the host; stateless.
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

struct WanAnimate2Cache {
  static constexpr const char* kDevices[] = {"cpu", "gpu", nullptr};
  static constexpr const char* kTypes[] = {"default", "int8", "int4", nullptr};
  static constexpr Widget kDevice{
      .choices = kDevices, .extra = R"({"default": "cpu", "multiselect": false})", .type = "COMBO"};
  static constexpr Widget kType{.choices = kTypes,
                                .extra = R"({"default": "default", "multiselect": false})",
                                .type = "COMBO"};

  static constexpr Info info{
      "WanAnimate2Cache",
      1,
      "",
      "model/conditioning/wan/animate",
      "Has a model of Wan Animate 2 follow the poses of WanAnimate2ToVideo, and keep what it makes "
      "of them for all steps, on the sampler's device and exactly, whatever is chosen. In ComfyUI "
      "it says where that is kept, and how exactly.",
      patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<std::string> device{"device", kDevice};
  static constexpr Input<std::string> dtype{"dtype", kType};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, device, dtype, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
