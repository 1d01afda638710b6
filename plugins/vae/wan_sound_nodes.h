// The nodes that tell Wan 2.2 S2V what it draws: a picture that moves with a sound, in parts that
// follow each other. Formulas: ComfyUI's nodes of these names. Stateless.
#pragma once

#include "plugins/vae/wan_nodes.h"

namespace heddle::vae {

namespace wan_ports {
inline constexpr Widget kSoundLength{.number = 77, .min = 1, .max = 16384, .step = 4};
constexpr Input<Value> heard() {
  return Input<Value>("audio_encoder_output", HEDDLE_PORT_OPTIONAL,
                      "What wav2vec2_large_english heard of the sound.", "AUDIO_ENCODER_OUTPUT");
}
constexpr Input<Tensor> shown() {
  return picture("ref_image", "What the video shows; the first picture.");
}
constexpr Input<Tensor> followed() {
  return picture("control_video", "A video that is followed, such as of poses.");
}
}  // namespace wan_ports

struct WanSoundImageToVideo {
  static constexpr Info info{"WanSoundImageToVideo", 1, "", "conditioning/video_models",
                             "The first part of a video of a picture that moves with a sound."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kSoundLength};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<Value> heard = wan_ports::heard();
  static constexpr Input<Tensor> ref_image = wan_ports::shown();
  static constexpr Input<Tensor> control_video = wan_ports::followed();
  static constexpr Input<Tensor> ref_motion =
      wan_ports::picture("ref_motion", "Frames before the video; the last 73 are read.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, width, height, length, batch_size, heard, ref_image,
                    control_video, ref_motion, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct WanSoundImageToVideoExtend {
  static constexpr Info info{"WanSoundImageToVideoExtend", 1, "", "conditioning/video_models",
                             "The part of such a video that follows the frames of video_latent."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> length{"length", wan_ports::kSoundLength};
  static constexpr Input<Value> video_latent{
      "video_latent", 0, "All parts before; the last 19 frames are read.", "LATENT"};
  static constexpr Input<Value> heard = wan_ports::heard();
  static constexpr Input<Tensor> ref_image = wan_ports::shown();
  static constexpr Input<Tensor> control_video = wan_ports::followed();
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, length, video_latent, heard, ref_image, control_video,
                    positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
