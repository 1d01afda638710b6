// SaveConditioning and ConditioningLoader: what a text encoder made of a text, as a file, so that
// the encoder is not needed again. LotusConditioning: of one such file. On the host; stateless.
#pragma once

#include "loader_nodes.h"

namespace heddle::loaders {

struct SaveConditioning {
  static constexpr Info info{"SaveConditioning",
                             1,
                             "Save Conditioning",
                             "model/conditioning",
                             "Saves a conditioning of one entry in the output folder. Moved to "
                             "models/embeddings, ConditioningLoader reads it.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_HOST, "", "CONDITIONING"};
  static constexpr Input<std::string> filename_prefix{"filename_prefix",
                                                      {.text = "conditioning/ComfyUI"}};
  static constexpr auto ports = heddle::ports(conditioning, filename_prefix);
  static void execute(Context& ctx);
};

struct ConditioningLoader {
  static constexpr Info info{"ConditioningLoader",
                             1,
                             "Load Conditioning",
                             "model/conditioning",
                             "A conditioning that SaveConditioning wrote.",
                             kLoader};
  static constexpr Input<std::string> conditioning_name{
      "conditioning_name",
      Widget{.source = "embeddings", .kind = HEDDLE_WIDGET_FILE, .type = "COMBO"}};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(conditioning_name, out);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

// Lotus was trained with one text, an empty one without padding, that OpenCLIP's H of Stable
// Diffusion 2.1 encoded. ComfyUI has these 2048 numbers in its source; here they are the first two
// tokens of a file that SaveConditioning wrote of an empty CLIPTextEncode with that encoder: it
// sees no token behind the one that it encodes, so padding changes neither.
struct LotusConditioning {
  static constexpr const char* kFile = "lotus_conditioning.safetensors";
  static constexpr Info info{"LotusConditioning",
                             1,
                             "",
                             "conditioning/lotus",
                             "The empty text that Lotus was trained with, out of "
                             "models/embeddings/lotus_conditioning.safetensors: what "
                             "SaveConditioning writes of an empty CLIPTextEncode by the encoder of "
                             "Stable Diffusion 2.1.",
                             kLoader};
  static constexpr Output<Value> out{"conditioning", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(out);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};
// The states (1, 2, W) of that text. Throws where there is no such file, saying how it is made.
Tensor lotus_text(Context& ctx);
// Changes with that file.
std::uint64_t fingerprint_of_lotus_text(Context& ctx);

}  // namespace heddle::loaders
