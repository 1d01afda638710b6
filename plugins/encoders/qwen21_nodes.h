// TextEncodeQwenImage21: what a picture shall show, and the pictures that it is made of, for
// Qwen-Image 2.1. Stateless.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/port_types.h"

namespace heddle::encoders {

struct TextEncodeQwenImage21 {
  static constexpr Widget kText{.extra = R"({"multiline": true, "dynamicPrompts": true})",
                                .flags = HEDDLE_PORT_PROMPT};
  static constexpr Widget kResolution{.number = 1024, .max = 4096, .step = 32};
  static constexpr Widget kImages{
      .extra = R"({"template": {"input": {"required": {"image": ["IMAGE", {}]}},
                   "names": ["image_1", "image_2", "image_3", "image_4", "image_5", "image_6",
                             "image_7", "image_8", "image_9", "image_10", "image_11", "image_12",
                             "image_13", "image_14", "image_15", "image_16"], "min": 0}})"};

  static constexpr Info info{"TextEncodeQwenImage21",
                             1,
                             "Text Encode Qwen Image 2.1",
                             "model/conditioning/qwen image",
                             "A prompt and what shall not be there, with the pictures that they "
                             "speak of as <image1>, <image2> ..., and an empty latent of the size "
                             "of the first of them. With a VAE the model is shown the pictures "
                             "themselves, else what the text encoder sees of them.",
                             HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> clip{"clip", 0, "Qwen3-VL, type qwen_image.", "CLIP"};
  static constexpr Input<std::string> prompt{"prompt", kText};
  static constexpr Input<std::string> negative_prompt{"negative_prompt", kText};
  static constexpr Input<std::int64_t> resolution{
      "resolution", kResolution,
      "Pictures are scaled to about so many pixels squared, each side a multiple of 32; 0: each "
      "keeps its size, rounded to such multiples."};
  static constexpr Input<blocks::Growing> images{"images", kImages};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS,
                                    "Encodes the pictures that the diffusion model is shown.",
                                    "VAE"};
  static constexpr Output<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative{"negative", 0, "", "CONDITIONING"};
  static constexpr Output<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(clip, prompt, negative_prompt, resolution, images,
                                              vae, positive, negative, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
