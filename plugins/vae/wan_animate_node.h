// The node that tells Wan 2.2 Animate what it draws: a person of a picture who moves as another one
// in a video. Formulas: ComfyUI's node of this name. Stateless.
#pragma once

#include "plugins/vae/wan_nodes.h"

namespace heddle::vae {

namespace wan_ports {
inline constexpr Widget kAnimateLength{.number = 77, .min = 1, .max = 16384, .step = 4},
    kContinued{.number = 5, .min = 1, .max = 16384, .step = 4},
    kVideoOffset{.number = 0, .min = 0, .max = 16384, .step = 1};
}  // namespace wan_ports

struct WanAnimateToVideo {
  static constexpr Info info{
      "WanAnimateToVideo",
      1,
      "",
      "conditioning/video_models",
      "A video of what a picture shows, which moves as poses and a face do. A long one is drawn in "
      "parts: continue_motion takes the frames of the last one, video_frame_offset what that gave.",
      HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kAnimateLength};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<std::int64_t> continued_most{"continue_motion_max_frames",
                                                      wan_ports::kContinued};
  static constexpr Input<std::int64_t> offset{"video_frame_offset", wan_ports::kVideoOffset};
  static constexpr Input<Value> clip_vision_output =
      wan_ports::seen("clip_vision_output", "What clip_vision_h saw of reference_image.");
  static constexpr Input<Tensor> reference_image = wan_ports::picture(
      "reference_image", "What the video shows. It is a frame before the video's.");
  static constexpr Input<Tensor> face_video =
      wan_ports::picture("face_video", "A face, cut out of a video.");
  static constexpr Input<Tensor> pose_video =
      wan_ports::picture("pose_video", "Skeletons of a video; the last one stays.");
  static constexpr Input<Tensor> background_video =
      wan_ports::picture("background_video", "What is behind; frames behind it are grey.");
  static constexpr Input<Tensor> character_mask{
      "character_mask", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HOST,
      "1 where the video is drawn anew; a single one counts for all frames.", "MASK"};
  static constexpr Input<Tensor> continue_motion =
      wan_ports::picture("continue_motion", "The last frames of these begin the video.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr Output<std::int64_t> trim_latent{"trim_latent"};
  static constexpr Output<std::int64_t> trim_image{"trim_image"};
  static constexpr Output<std::int64_t> offset_out{"video_frame_offset"};
  static constexpr auto ports = heddle::ports(
      positive, negative, vae, width, height, length, batch_size, continued_most, offset,
      clip_vision_output, reference_image, face_video, pose_video, background_video, character_mask,
      continue_motion, positive_out, negative_out, latent, trim_latent, trim_image, offset_out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
