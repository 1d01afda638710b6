// The node that begins a video of a causal Wan 2.1 with a picture, which the model looks at as it
// does at frames that it drew. Formulas: ComfyUI's node of this name. Stateless.
#pragma once

#include "plugins/vae/wan_nodes.h"

namespace heddle::vae {

// Model and latent belong together.
struct ARVideoI2V {
  static constexpr Widget kWidth{.number = 832, .min = 16, .max = 8192, .step = 16},
      kHeight{.number = 480, .min = 16, .max = 8192, .step = 16};
  static constexpr Info info{"ARVideoI2V", 1, "", "model/conditioning/autoregressive",
                             "A video that begins with a picture, for SamplerARVideo."};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<Tensor> start_image{"start_image", HEDDLE_PORT_HOST, "The first frame.",
                                             "IMAGE"};
  static constexpr Input<std::int64_t> width{"width", kWidth};
  static constexpr Input<std::int64_t> height{"height", kHeight};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 81, .min = 1, .max = 1024, .step = 4}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  Widget{.number = 1, .min = 1, .max = 64}};
  static constexpr Output<Value> model_out{"MODEL", 0, "", "MODEL"};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(model, vae, start_image, width, height, length, batch_size, model_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
