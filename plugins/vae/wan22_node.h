// The node that makes the latent of a video for Wan 2.2's 5B, which is shown a first picture in the
// latent itself. Formulas: ComfyUI's node of this name. Stateless.
#pragma once

#include "plugins/vae/wan_nodes.h"

namespace heddle::vae {

namespace wan_ports {
constexpr Widget large_side(double number) {
  return Widget{.number = number, .min = 32, .max = 16384, .step = 32};
}
}  // namespace wan_ports

struct Wan22ImageToVideoLatent {
  static constexpr Info info{"Wan22ImageToVideoLatent", 1, "", "conditioning/inpaint",
                             "The latent of a video that may begin with given frames: these are "
                             "kept, the others are drawn."};
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::large_side(1280)};
  static constexpr Input<std::int64_t> height{"height", wan_ports::large_side(704)};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 49, .min = 1, .max = 16384, .step = 4}};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<Tensor> start_image =
      wan_ports::picture("start_image", "The first frames.");
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(vae, width, height, length, batch_size, start_image, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
