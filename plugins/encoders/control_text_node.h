// CLIPTextEncodeControlnet: a text that the ControlNets of a CONDITIONING read in place of its own
// (plugins/samplers/control_value.h). Stateless.
#pragma once

#include "text_nodes.h"

namespace heddle::encoders {

// As in ComfyUI only the states of the text count: what is pooled is the conditioning's own.
struct CLIPTextEncodeControlnet {
  static constexpr Info info{"CLIPTextEncodeControlnet",
                             1,
                             "",
                             "_for_testing/conditioning",
                             "A prompt for the ControlNets of a conditioning alone.",
                             HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> clip{"clip", 0, "The text encoders.", "CLIP"};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<std::string> text{"text", kPromptText, "The prompt."};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(clip, conditioning, text, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::encoders
