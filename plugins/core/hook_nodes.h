// Nodes that make HOOKS out of files of models, under ComfyUI's names. They read no weights: what a
// hook changes is read where a conditioning with it is evaluated. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::loaders {

namespace hook_ports {
inline constexpr std::uint32_t kFlags =
    HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES | HEDDLE_NODE_EXPERIMENTAL;
inline constexpr Widget kStrength{.number = 1, .min = -20, .max = 20, .step = 0.01};
constexpr Input<Value> previous() {
  return Input<Value>("prev_hooks", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL, "", "HOOKS");
}
constexpr Output<Value> hooks() { return Output<Value>("HOOKS", 0, "", "HOOKS"); }
}  // namespace hook_ports

struct CreateHookLora {
  static constexpr Info info{"CreateHookLora",
                             1,
                             "Create Hook LoRA",
                             "advanced/hooks/create",
                             "A LoRA for the conditionings that get this hook.",
                             hook_ports::kFlags};
  static constexpr Input<std::string> lora_name{"lora_name", Widget{.source = "loras"}};
  static constexpr Input<double> strength_model{"strength_model", hook_ports::kStrength};
  static constexpr Input<double> strength_clip{"strength_clip", hook_ports::kStrength};
  static constexpr Input<Value> prev_hooks = hook_ports::previous();
  static constexpr Output<Value> out = hook_ports::hooks();
  static constexpr auto ports =
      heddle::ports(lora_name, strength_model, strength_clip, prev_hooks, out);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct CreateHookLoraModelOnly {
  static constexpr Info info{"CreateHookLoraModelOnly",
                             1,
                             "Create Hook LoRA (MO)",
                             "advanced/hooks/create",
                             "The same for the diffusion model alone.",
                             hook_ports::kFlags};
  static constexpr Input<std::string> lora_name{"lora_name", Widget{.source = "loras"}};
  static constexpr Input<double> strength_model{"strength_model", hook_ports::kStrength};
  static constexpr Input<Value> prev_hooks = hook_ports::previous();
  static constexpr Output<Value> out = hook_ports::hooks();
  static constexpr auto ports = heddle::ports(lora_name, strength_model, prev_hooks, out);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct CreateHookModelAsLora {
  static constexpr Info info{"CreateHookModelAsLora",
                             1,
                             "Create Hook Model as LoRA",
                             "advanced/hooks/create",
                             "What another model's weights differ by, for the conditionings that "
                             "get this hook.",
                             hook_ports::kFlags};
  static constexpr Input<std::string> ckpt_name{"ckpt_name", Widget{.source = "checkpoints"}};
  static constexpr Input<double> strength_model{"strength_model", hook_ports::kStrength};
  static constexpr Input<double> strength_clip{"strength_clip", hook_ports::kStrength};
  static constexpr Input<Value> prev_hooks = hook_ports::previous();
  static constexpr Output<Value> out = hook_ports::hooks();
  static constexpr auto ports =
      heddle::ports(ckpt_name, strength_model, strength_clip, prev_hooks, out);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct CreateHookModelAsLoraModelOnly {
  static constexpr Info info{"CreateHookModelAsLoraModelOnly",          1,
                             "Create Hook Model as LoRA (MO)",          "advanced/hooks/create",
                             "The same for the diffusion model alone.", hook_ports::kFlags};
  static constexpr Input<std::string> ckpt_name{"ckpt_name", Widget{.source = "checkpoints"}};
  static constexpr Input<double> strength_model{"strength_model", hook_ports::kStrength};
  static constexpr Input<Value> prev_hooks = hook_ports::previous();
  static constexpr Output<Value> out = hook_ports::hooks();
  static constexpr auto ports = heddle::ports(ckpt_name, strength_model, prev_hooks, out);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::loaders
