// QwenImage21Cache: how ComfyUI keeps what Qwen-Image 2.1 makes of text and shown pictures, which
// no step changes. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct QwenImage21Cache {
  static constexpr const char* kDevices[] = {"auto", "gpu", "cpu", "off", nullptr};
  static constexpr const char* kTypes[] = {"default", "int8", "int4", nullptr};
  static constexpr Widget kDevice{.choices = kDevices,
                                  .extra = R"({"default": "auto", "multiselect": false})",
                                  .type = "COMBO"};
  static constexpr Widget kType{.choices = kTypes,
                                .extra = R"({"default": "default", "multiselect": false})",
                                .type = "COMBO"};

  static constexpr Info info{
      "QwenImage21Cache",
      1,
      "Qwen Image 2.1 Cache",
      "model/conditioning/qwen image",
      "Gives the model as it is: each step computes text and shown pictures anew and exactly, "
      "whatever is chosen. In ComfyUI it says where they are kept, and how exactly.",
      HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> device{"device", kDevice};
  static constexpr Input<std::string> dtype{"dtype", kType};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, device, dtype, out);
  static void execute(Context& ctx) { ctx[out] = ctx[model]; }
};

}  // namespace heddle::samplers
