// MiniMaxH3ImageToVideo: a prompt for MiniMax H3 with the pictures that a video begins and ends
// with, and an empty latent of the video and its sound; MiniMaxH3AddGuide: pictures and sounds at
// any time of it. Pictures are shown clean, though the model is told of a thousandth of noise; the
// publishers' pipeline adds that noise, and draws the latent about the autoencoder's mean.
// Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

struct MiniMaxH3ImageToVideo {
  static constexpr Widget kText{.extra = R"({"multiline": true, "dynamicPrompts": true})",
                                .flags = HEDDLE_PORT_PROMPT};
  static constexpr Info info{"MiniMaxH3ImageToVideo", 1, "MiniMax H3 Image to Video",
                             "model/conditioning/minimax",
                             "A prompt, with the pictures that the video begins and ends with, "
                             "and an empty latent of the video with its sound."};
  static constexpr Input<Value> clip{"clip", 0, "Qwen3-VL 32B, type minimax.", "CLIP"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "", "VAE"};
  static constexpr Input<std::string> prompt{"prompt", kText};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 1344, .min = 32, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 768, .min = 32, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 124, .min = 5, .max = 3600, .step = 17}};
  static constexpr Input<Value> first_frame{"first_frame", HEDDLE_PORT_OPTIONAL,
                                            "Stretched to the video's size.", "IMAGE"};
  static constexpr Input<Value> last_frame{
      "last_frame", HEDDLE_PORT_OPTIONAL,
      "Scaled to the video's size after its middle is cut out to the aspect.", "IMAGE"};
  static constexpr Output<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(clip, vae, prompt, width, height, length, first_frame,
                                              last_frame, positive, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
  std::uint64_t fingerprint(Context& ctx);
};

struct MiniMaxH3AddGuide {
  static constexpr Info info{
      "MiniMaxH3AddGuide", 1, "Add Guide for MiniMax H3", "model/conditioning/minimax",
      "Shows the model pictures from one of the video's own on, one of them or whole clips of 5, "
      "22, 39 ... of them, and a sound from there on, as much of it as fits into the video."};
  static constexpr Widget kIndex{.number = 0, .min = -9999, .max = 9999};
  static constexpr Input<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Input<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr Input<std::int64_t> frame_idx{
      "frame_idx", kIndex, "The picture of the video; negative ones count from the end."};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS, "", "VAE"};
  static constexpr Input<Value> audio_vae{"audio_vae", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS, "",
                                          "VAE"};
  static constexpr Input<Value> image{"image", HEDDLE_PORT_OPTIONAL, "", "IMAGE"};
  static constexpr Input<Value> audio{"audio", HEDDLE_PORT_OPTIONAL, "", "AUDIO"};
  static constexpr Output<Value> out{"positive", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(positive, latent, frame_idx, vae, audio_vae, image, audio, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
