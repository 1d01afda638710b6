// LoraSave: a difference of two models, as ModelMergeSubtract makes it, as a LoRA file. On the
// host; stateless.
#pragma once

#include <heddle/node.hpp>

#include "save_nodes.h"

namespace heddle::loaders {

struct LoraSave {
  static constexpr const char* kTypes[] = {"standard", "full_diff", nullptr};

  static constexpr Info info{
      "LoraSave",
      1,
      "Extract and Save Lora",
      "experimental",
      "Saves weights that are a difference of two models as a LoRA: matrices by two factors of "
      "this rank, or whole. Large matrices take seconds each.",
      kSaver | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<std::string> filename_prefix{
      "filename_prefix",
      {.text = "loras/ComfyUI_extracted_lora", .extra = R"({"multiline": false})"}};
  static constexpr Input<std::int64_t> rank{
      "rank", {.number = 8, .min = 1, .max = 4096, .step = 1, .extra = R"({"advanced": true})"}};
  static constexpr Input<std::string> lora_type{
      "lora_type", Widget{.choices = kTypes, .extra = R"({"advanced": true})", .type = "COMBO"}};
  static constexpr Input<bool> bias_diff{"bias_diff",
                                         {.number = 1, .extra = R"({"advanced": true})"}};
  static constexpr Input<Value> model_diff{"model_diff", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL,
                                           "", "MODEL"};
  static constexpr Input<Value> text_encoder_diff{
      "text_encoder_diff", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL, "", "CLIP"};
  static constexpr Input<std::string> prompt{"prompt", kSaverHidden, "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{"extra_pnginfo", kSaverHidden, "",
                                                    "EXTRA_PNGINFO"};
  static constexpr auto ports = heddle::ports(filename_prefix, rank, lora_type, bias_diff,
                                              model_diff, text_encoder_diff, prompt, extra_pnginfo);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
