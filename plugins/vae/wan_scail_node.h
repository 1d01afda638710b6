// The node that tells SCAIL 2 what it draws: persons of pictures who move as others do in a video,
// or stand in their places. Formulas: ComfyUI's node of this name. Stateless.
#pragma once

#include "plugins/vae/wan22_node.h"
#include "plugins/vae/wan_animate2_node.h"

namespace heddle::vae {

struct WanSCAILToVideo {
  static constexpr Widget kReplaces{.number = 0, .flags = HEDDLE_PORT_OPTIONAL};

  static constexpr Info info{
      "WanSCAILToVideo",
      2,
      "",
      "model/conditioning/wan/scail",
      "A video of what pictures show, which moves as a video does, by SCAIL 2. A long one is drawn "
      "in parts: previous_frames takes the frames of the last one, video_frame_offset what that "
      "gave.",
      HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::large_side(512)};
  static constexpr Input<std::int64_t> height{"height", wan_ports::large_side(896)};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kLength};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<double> pose_strength{"pose_strength", wan_ports::kPoseStrength,
                                               "A factor of the poses' latent."};
  static constexpr Input<double> pose_start{"pose_start", wan_ports::kPoseStart,
                                            "Steps before this share follow no poses."};
  static constexpr Input<double> pose_end{"pose_end", wan_ports::kPoseEnd,
                                          "Steps behind this share follow no poses."};
  static constexpr Input<std::int64_t> offset{"video_frame_offset", wan_ports::kVideoOffset};
  static constexpr Input<std::int64_t> anchors{"previous_frame_count", wan_ports::kContinued,
                                               "The last so many of previous_frames are kept."};
  static constexpr Input<Tensor> pose_video =
      wan_ports::picture("pose_video", "What moves; seen at half the size.");
  static constexpr Input<Tensor> pose_video_mask =
      wan_ports::picture("pose_video_mask", "Its persons, each in a colour, by SCAIL2ColoredMask.");
  static constexpr Input<bool> replacement_mode{
      "replacement_mode", kReplaces,
      "The persons are put in the places of those of pose_video: of reference_image what has a "
      "colour is seen alone."};
  static constexpr Input<Tensor> reference_image = wan_ports::picture(
      "reference_image", "Who is seen. Further pictures show them from elsewhere.");
  static constexpr Input<Tensor> reference_image_mask = wan_ports::picture(
      "reference_image_mask", "Its persons in the colours of those whom they follow.");
  static constexpr Input<Value> clip_vision_output =
      wan_ports::seen("clip_vision_output", "What clip_vision_h saw of reference_image.");
  static constexpr Input<Tensor> previous_frames =
      wan_ports::picture("previous_frames", "The last ones of these begin the video.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr Output<std::int64_t> offset_out{"video_frame_offset"};
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, width, height, length, batch_size, pose_strength,
                    pose_start, pose_end, offset, anchors, pose_video, pose_video_mask,
                    replacement_mode, reference_image, reference_image_mask, clip_vision_output,
                    previous_frames, positive_out, negative_out, latent, offset_out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
