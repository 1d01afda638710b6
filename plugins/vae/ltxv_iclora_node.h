// GetICLoRAParameters: what an IC-LoRA's file says of the pictures that it is shown, which a MODEL
// keeps in its settings ("reference_downscale_factor", a text).
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// Of IC_LORA_PARAMETERS, a record: how much smaller than the video the pictures are, at least 1.
std::int64_t reference_factor(const Value& parameters);

struct GetICLoRAParameters {
  static constexpr Info info{
      "GetICLoRAParameters",
      1,
      "Get IC-LoRA Parameters",
      "model/conditioning/ltxv",
      "How large the pictures of LTXVAddGuide are to be, as the last LoRA of "
      "the model says it.",
      HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> iclora_model{"iclora_model", HEDDLE_PORT_PASS,
                                             "Right behind the loader of the IC-LoRA.", "MODEL"};
  static constexpr Output<Value> iclora_parameters{"iclora_parameters", 0, "",
                                                   "IC_LORA_PARAMETERS"};
  static constexpr auto ports = heddle::ports(iclora_model, iclora_parameters);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
