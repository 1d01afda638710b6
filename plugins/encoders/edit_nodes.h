// Nodes that turn a text and the pictures that it speaks of into CONDITIONING, for models that
// change pictures. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

namespace edit_text_ports {
inline constexpr Widget kPrompt{.extra = R"({"multiline": true, "dynamicPrompts": true})",
                                .flags = HEDDLE_PORT_PROMPT};
constexpr Input<Value> clip() {
  return Input<Value>("clip", 0, "Qwen2.5-VL with its vision tower.", "CLIP");
}
constexpr Input<Value> vae() {
  return Input<Value>("vae", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS,
                      "Encodes the pictures that the diffusion model is shown.", "VAE");
}
constexpr Input<Tensor> image(const char* name) {
  return Input<Tensor>(name, HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HOST, "(B, H, W, C) f32, 0 to 1",
                       "IMAGE");
}
}  // namespace edit_text_ports

struct TextEncodeQwenImageEdit {
  static constexpr Info info{"TextEncodeQwenImageEdit", 1, "", "advanced/conditioning",
                             "What shall be changed in a picture, for Qwen-Image Edit."};
  static constexpr Input<Value> clip = edit_text_ports::clip();
  static constexpr Input<std::string> prompt{"prompt", edit_text_ports::kPrompt};
  static constexpr Input<Value> vae = edit_text_ports::vae();
  static constexpr Input<Tensor> image = edit_text_ports::image("image");
  static constexpr Output<Value> conditioning{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(clip, prompt, vae, image, conditioning);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct TextEncodeQwenImageEditPlus {
  static constexpr Info info{"TextEncodeQwenImageEditPlus", 1, "", "advanced/conditioning",
                             "What shall be made of up to three pictures, for Qwen-Image Edit 2509 "
                             "and later."};
  static constexpr Input<Value> clip = edit_text_ports::clip();
  static constexpr Input<std::string> prompt{"prompt", edit_text_ports::kPrompt};
  static constexpr Input<Value> vae = edit_text_ports::vae();
  static constexpr Input<Tensor> image1 = edit_text_ports::image("image1");
  static constexpr Input<Tensor> image2 = edit_text_ports::image("image2");
  static constexpr Input<Tensor> image3 = edit_text_ports::image("image3");
  static constexpr Output<Value> conditioning{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(clip, prompt, vae, image1, image2, image3, conditioning);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
