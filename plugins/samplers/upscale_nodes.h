// The node that tells Stable Diffusion's x4 upscaler which picture it draws larger. On the host;
// stateless.
#pragma once

#include "edit_nodes.h"

namespace heddle::samplers {

struct SD_4XUpscale_Conditioning {
  static constexpr Info info{"SD_4XUpscale_Conditioning",
                             1,
                             "",
                             "model/conditioning/stable diffusion upscaler",
                             "A small picture that the x4 upscaler draws larger, with noise in it, "
                             "and an empty latent of a quarter of the new size.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> images{"images", HEDDLE_PORT_HOST, "(B, H, W, 3) f32, 0 to 1",
                                        "IMAGE"};
  static constexpr Input<Value> positive = edit_ports::conditioning("positive");
  static constexpr Input<Value> negative = edit_ports::conditioning("negative");
  static constexpr Input<double> scale_ratio{
      "scale_ratio", Widget{.number = 4, .min = 0, .max = 10, .step = 0.01}};
  static constexpr Input<double> noise_augmentation{
      "noise_augmentation",
      Widget{.number = 0, .max = 1, .step = 0.001, .extra = R"({"advanced": true})"},
      "How much noise the small picture gets: of 350 levels."};
  static constexpr Output<Value> positive_out = edit_ports::changed("positive");
  static constexpr Output<Value> negative_out = edit_ports::changed("negative");
  static constexpr Output<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(images, positive, negative, scale_ratio, noise_augmentation, positive_out,
                    negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
