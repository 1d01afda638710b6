// SaveConditioning and ConditioningLoader: what a text encoder made of a text, as a file, so that
// the encoder is not needed again. On the host; stateless.
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

}  // namespace heddle::loaders
