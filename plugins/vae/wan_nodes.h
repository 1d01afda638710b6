// Nodes that tell Wan which frames of a video are given: what it reads beside the text, and an
// empty latent of the video. Formulas: ComfyUI's nodes of these names. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

namespace wan_ports {
inline constexpr Widget kBatch{.number = 1, .min = 1, .max = 4096};
constexpr Input<Value> conditioning(const char* name) {
  return Input<Value>(name, HEDDLE_PORT_PASS, "", "CONDITIONING");
}
constexpr Input<Value> vae() {
  return Input<Value>("vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE");
}
constexpr Widget side(double number) {
  return Widget{.number = number, .min = 16, .max = 16384, .step = 16};
}
inline constexpr Widget kWidth = side(832), kHeight = side(480),
                        kLength{.number = 81, .min = 1, .max = 16384, .step = 4};
constexpr Input<Tensor> picture(const char* name, const char* doc) {
  return Input<Tensor>(name, HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HOST, doc, "IMAGE");
}
constexpr Input<Value> seen(const char* name, const char* doc) {
  return Input<Value>(name, HEDDLE_PORT_OPTIONAL, doc, "CLIP_VISION_OUTPUT");
}
constexpr Output<Value> changed(const char* name) {
  return Output<Value>(name, 0, "", "CONDITIONING");
}
constexpr Output<Value> latent() { return Output<Value>("latent", 0, "", "LATENT"); }
}  // namespace wan_ports

struct WanImageToVideo {
  static constexpr Info info{
      "WanImageToVideo", 1, "", "model/conditioning/wan",
      "A video that begins with given frames. Those behind them are grey, or "
      "ref_pad_image."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kLength};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<Value> clip_vision_output =
      wan_ports::seen("clip_vision_output", "What clip_vision_h saw of the first frame.");
  static constexpr Input<Tensor> start_image =
      wan_ports::picture("start_image", "The first frames.");
  static constexpr Input<Tensor> ref_pad_image =
      wan_ports::picture("ref_pad_image", "Fills the frames behind start_image.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, width, height, length, batch_size, clip_vision_output,
                    start_image, ref_pad_image, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct WanFirstLastFrameToVideo {
  static constexpr Info info{"WanFirstLastFrameToVideo", 1, "", "conditioning/video_models",
                             "A video that begins and ends with given frames."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kLength};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<Value> clip_vision_output =
      wan_ports::seen("clip_vision_start_image", "What clip_vision_h saw of the first frame.");
  static constexpr Input<Value> clip_vision_end =
      wan_ports::seen("clip_vision_end_image", "What it saw of the last one.");
  static constexpr Input<Tensor> start_image =
      wan_ports::picture("start_image", "The first frames.");
  static constexpr Input<Tensor> end_image = wan_ports::picture("end_image", "The last frames.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, width, height, length, batch_size, clip_vision_output,
                    clip_vision_end, start_image, end_image, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct WanFunInpaintToVideo {
  static constexpr Info info{"WanFunInpaintToVideo", 1, "", "conditioning/video_models",
                             "A video that begins and ends with given frames, by Wan Fun."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kLength};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<Value> clip_vision_output =
      wan_ports::seen("clip_vision_output", "What clip_vision_h saw of the first frame.");
  static constexpr Input<Tensor> start_image =
      wan_ports::picture("start_image", "The first frames.");
  static constexpr Input<Tensor> end_image = wan_ports::picture("end_image", "The last frames.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, width, height, length, batch_size, clip_vision_output,
                    start_image, end_image, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct WanFunControlToVideo {
  static constexpr Info info{"WanFunControlToVideo", 1, "", "conditioning/video_models",
                             "A video that follows another one, and may begin with given frames, "
                             "by Wan Fun Control."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kLength};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<Value> clip_vision_output =
      wan_ports::seen("clip_vision_output", "What clip_vision_h saw of the first frame.");
  static constexpr Input<Tensor> start_image =
      wan_ports::picture("start_image", "The first frames.");
  static constexpr Input<Tensor> control_video =
      wan_ports::picture("control_video", "What is followed: poses, edges, depths.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, width, height, length, batch_size, clip_vision_output,
                    start_image, control_video, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
