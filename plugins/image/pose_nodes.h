// plugins/image/pose_nodes.h - POSE_KEYPOINT: a list of pictures {canvas_width, canvas_height,
// people}, each of people with lists of x, y and score of each point in pixels, as OpenPose writes
// them: pose_keypoints_2d (18 points), foot_keypoints_2d (6), face_keypoints_2d (70, of which the
// last two are the eyes), hand_right_keypoints_2d and hand_left_keypoints_2d (21). Stateless; any
// thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

struct SdPoseDrawKeypoints {
  static constexpr Widget kYes{.number = 1};
  static constexpr Info info{"SDPoseDrawKeypoints",
                             1,
                             "SDPose Draw Keypoints",
                             "image/detection",
                             "Draws people as coloured limbs and dots.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> keypoints{"keypoints", 0, "", "POSE_KEYPOINT"};
  static constexpr Input<bool> draw_body{"draw_body", kYes};
  static constexpr Input<bool> draw_hands{"draw_hands", kYes};
  static constexpr Input<bool> draw_face{"draw_face", kYes};
  static constexpr Input<bool> draw_feet{"draw_feet", Widget{}};
  static constexpr Input<std::int64_t> stick_width{
      "stick_width", Widget{.number = 4, .min = 1, .max = 10, .step = 1}};
  static constexpr Input<std::int64_t> face_point_size{
      "face_point_size", Widget{.number = 3, .min = 1, .max = 10, .step = 1}};
  static constexpr Input<double> score_threshold{
      "score_threshold", Widget{.number = 0.3, .min = 0, .max = 1, .step = 0.01}};
  static constexpr Input<bool> draw_head{"draw_head", kYes};
  static constexpr Output<Tensor> out{"IMAGE", 0, "(B, H, W, 3) f32, 0 to 1", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(keypoints, draw_body, draw_hands, draw_face, draw_feet, stick_width,
                    face_point_size, score_threshold, draw_head, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
