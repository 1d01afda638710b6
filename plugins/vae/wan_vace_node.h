// The node that tells VACE of Wan which videos are followed, and where they are drawn anew.
// Formulas: ComfyUI's node of this name. Stateless.
#pragma once

#include "plugins/vae/wan_nodes.h"

namespace heddle::vae {

struct WanVaceToVideo {
  static constexpr Info info{
      "WanVaceToVideo", 1, "", "conditioning/video_models",
      "A video that follows another one, draws a part of it anew, or is of what a picture shows. "
      "Several of these nodes behind each other all count."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kLength};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<double> strength{
      "strength", Widget{.number = 1.0, .min = 0.0, .max = 1000.0, .step = 0.01}};
  static constexpr Input<Tensor> control_video = wan_ports::picture(
      "control_video", "What is followed; frames behind it, or all without it, are grey.");
  static constexpr Input<Tensor> control_masks{
      "control_masks", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HOST,
      "1 where the video is drawn anew; frames behind them, or all without them, are.", "MASK"};
  static constexpr Input<Tensor> reference_image = wan_ports::picture(
      "reference_image", "What the video shows. It is a frame before the video's.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr Output<std::int64_t> trim_latent{"trim_latent"};
  static constexpr auto ports = heddle::ports(
      positive, negative, vae, width, height, length, batch_size, strength, control_video,
      control_masks, reference_image, positive_out, negative_out, latent, trim_latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
