// Boxes with phrases for GLIGEN (heddle/diffusion/values.h). Stateless.
#pragma once

#include "text_nodes.h"

namespace heddle::encoders {

struct GLIGENTextBoxApply {
  static constexpr Widget kSize{.number = 64, .min = 8, .max = 16384, .step = 8};
  static constexpr Widget kPlace{.number = 0, .min = 0, .max = 16384, .step = 8};

  static constexpr Info info{"GLIGENTextBoxApply", 1, "GLIGENTextBoxApply", "conditioning/gligen",
                             "What shall stand in a box of the picture."};
  static constexpr Input<Value> conditioning{"conditioning_to", HEDDLE_PORT_PASS, "",
                                             "CONDITIONING"};
  static constexpr Input<Value> clip{"clip", 0, "", "CLIP"};
  static constexpr Input<Value> gligen{"gligen_textbox_model", 0, "", "GLIGEN"};
  static constexpr Input<std::string> text{"text", kPromptText};
  static constexpr Input<std::int64_t> width{"width", kSize};
  static constexpr Input<std::int64_t> height{"height", kSize};
  static constexpr Input<std::int64_t> x{"x", kPlace};
  static constexpr Input<std::int64_t> y{"y", kPlace};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(conditioning, clip, gligen, text, width, height, x, y, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::encoders
