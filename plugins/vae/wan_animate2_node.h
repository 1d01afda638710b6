// The node that tells Wan Animate 2 what it draws: what a picture shows, which moves as what a
// video shows, without skeletons. Formulas: ComfyUI's node of this name. Stateless.
#pragma once

#include "plugins/vae/wan_animate_node.h"

namespace heddle::vae {

namespace wan_ports {
inline constexpr Widget kPoseStrength{.number = 1, .min = 0, .max = 10, .step = 0.01},
    kPoseStart{.number = 0, .min = 0, .max = 1, .step = 0.01},
    kPoseEnd{.number = 1, .min = 0, .max = 1, .step = 0.01};
}  // namespace wan_ports

struct WanAnimate2ToVideo {
  static constexpr Info info{
      "WanAnimate2ToVideo",
      2,
      "",
      "model/conditioning/wan/animate",
      "A video of what a picture shows, which moves as what a video shows. Its model goes through "
      "WanAnimate2Cache. A long one is drawn in parts: continue_motion takes the frames of the "
      "last one, video_frame_offset what that gave.",
      HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kLength};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<std::int64_t> offset{"video_frame_offset", wan_ports::kVideoOffset};
  static constexpr Input<double> pose_strength{"pose_strength", wan_ports::kPoseStrength,
                                               "Others than 1 are refused."};
  static constexpr Input<double> pose_start{"pose_start_percent", wan_ports::kPoseStart,
                                            "Steps before this share follow no poses."};
  static constexpr Input<double> pose_end{"pose_end_percent", wan_ports::kPoseEnd,
                                          "Steps behind this share follow no poses."};
  static constexpr Input<double> reference_strength{
      "reference_image_strength", wan_ports::kPoseStrength, "Others than 1 are refused."};
  static constexpr Input<Tensor> reference_image = wan_ports::picture(
      "reference_image", "What the video shows. It is a frame before the video's.");
  static constexpr Input<Tensor> pose_video =
      wan_ports::picture("pose_video", "What moves; the last picture stays.");
  static constexpr Input<Value> clip_vision_output =
      wan_ports::seen("clip_vision_output", "What clip_vision_h saw of reference_image.");
  static constexpr Input<Value> positive_pose{"positive_pose", HEDDLE_PORT_OPTIONAL,
                                              "A text of pose_video, else that of positive.",
                                              "CONDITIONING"};
  static constexpr Input<Value> clip_vision_output_pose = wan_ports::seen(
      "clip_vision_output_pose", "What clip_vision_h saw of pose_video, else clip_vision_output.");
  static constexpr Input<Tensor> continue_motion =
      wan_ports::picture("continue_motion", "The last one of these begins the video.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr Output<std::int64_t> trim_latent{"trim_latent"};
  static constexpr Output<std::int64_t> trim_image{"trim_image"};
  static constexpr Output<std::int64_t> offset_out{"video_frame_offset"};
  static constexpr auto ports = heddle::ports(
      positive, negative, vae, width, height, length, batch_size, offset, pose_strength, pose_start,
      pose_end, reference_strength, reference_image, pose_video, clip_vision_output, positive_pose,
      clip_vision_output_pose, continue_motion, positive_out, negative_out, latent, trim_latent,
      trim_image, offset_out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
