// LoRA loaders, under ComfyUI's names: they give a MODEL and a CLIP with patches, and read no
// weights. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

#include "loader_nodes.h"
#include "value_types.h"

namespace heddle::loaders {

inline constexpr Widget kLoraStrength{.number = 1, .min = -100, .max = 100, .step = 0.01};

struct LoraLoader {
  static constexpr Info info{"LoraLoader",
                             1,
                             "Load LoRA",
                             "loaders",
                             "Adds a LoRA to a diffusion model and to its text encoders. One after "
                             "another adds several.",
                             kLoader};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> clip{"clip", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<std::string> lora_name{"lora_name", Widget{.source = "loras"}};
  static constexpr Input<double> strength_model{"strength_model", kLoraStrength};
  static constexpr Input<double> strength_clip{"strength_clip", kLoraStrength};
  static constexpr Output<Value> model_out{"MODEL", 0, "", "MODEL"};
  static constexpr Output<Value> clip_out{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports =
      heddle::ports(model, clip, lora_name, strength_model, strength_clip, model_out, clip_out);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct LoraLoaderModelOnly {
  static constexpr Info info{"LoraLoaderModelOnly",
                             1,
                             "LoraLoaderModelOnly",
                             "loaders",
                             "Adds a LoRA to a diffusion model.",
                             kLoader};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> lora_name{"lora_name", Widget{.source = "loras"}};
  static constexpr Input<double> strength_model{"strength_model", kLoraStrength};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, lora_name, strength_model, out);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

// ComfyUI's nodes that add a LoRA to what a module gives instead of to its weights: the same model,
// rounded otherwise. Here there is one way to add it (WeightPatches).
struct LoraLoaderBypass : LoraLoader {
  static constexpr Info info{"LoraLoaderBypass",
                             1,
                             "Load LoRA (Bypass) (For debugging)",
                             "model/loaders",
                             "The same as LoraLoader.",
                             kLoader | HEDDLE_NODE_EXPERIMENTAL};
};

struct LoraLoaderBypassModelOnly : LoraLoaderModelOnly {
  static constexpr Info info{"LoraLoaderBypassModelOnly",
                             1,
                             "Load LoRA (Bypass, Model Only) (for debugging)",
                             "model/loaders",
                             "The same as LoraLoaderModelOnly.",
                             kLoader | HEDDLE_NODE_EXPERIMENTAL};
};

// Rows of LoRA files, each on top of those before it. A row without a name, of strength 0 or that
// is not enabled is left out.
inline constexpr Widget kLoraRows{.extra = R"({"template": {"required": {
        "lora_name": ["COMBO", {"multiselect": false, "options": []}],
        "strength": ["FLOAT", {"default": 1.0, "min": -100.0, "max": 100.0, "step": 0.01}],
        "enabled": ["BOOLEAN", {"default": true}]}}, "min": 1, "max": 20, "group_name": "LoRA"})"};

struct LoadLoraModel {
  static constexpr Info info{"LoadLoraModel",
                             1,
                             "Load LoRA (Model)",
                             "model/loaders",
                             "Adds several LoRAs to a diffusion model.",
                             kLoader | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<blocks::Grouped> loras{"loras", kLoraRows};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, loras, out);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct LoadLoraTextEncoder {
  static constexpr Info info{"LoadLoraTextEncoder",
                             1,
                             "Load LoRA (Text Encoder)",
                             "model/loaders",
                             "Adds several LoRAs to text encoders.",
                             kLoader | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> clip{"clip", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<blocks::Grouped> loras{"loras", kLoraRows};
  static constexpr Output<Value> out{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip, loras, out);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::loaders
