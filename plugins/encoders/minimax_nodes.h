// MiniMaxH3ImageToVideo: a prompt for MiniMax H3, and an empty latent of a video and its sound.
// Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

struct MiniMaxH3ImageToVideo {
  static constexpr Widget kText{.extra = R"({"multiline": true, "dynamicPrompts": true})",
                                .flags = HEDDLE_PORT_PROMPT};
  static constexpr Info info{"MiniMaxH3ImageToVideo", 1, "MiniMax H3 Image to Video",
                             "model/conditioning/minimax",
                             "A prompt, and an empty latent of a video with its sound. First and "
                             "last pictures are refused: samplers do not show them yet."};
  static constexpr Input<Value> clip{"clip", 0, "Qwen3-VL 32B, type minimax.", "CLIP"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "", "VAE"};
  static constexpr Input<std::string> prompt{"prompt", kText};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 1344, .min = 32, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 768, .min = 32, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 124, .min = 5, .max = 3600, .step = 17}};
  static constexpr Input<Value> first_frame{"first_frame", HEDDLE_PORT_OPTIONAL, "", "IMAGE"};
  static constexpr Input<Value> last_frame{"last_frame", HEDDLE_PORT_OPTIONAL, "", "IMAGE"};
  static constexpr Output<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(clip, vae, prompt, width, height, length, first_frame,
                                              last_frame, positive, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::encoders
