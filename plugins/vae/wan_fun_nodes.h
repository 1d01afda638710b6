// Nodes for Wan Fun: the path of a camera, a video that moves along it, and one that follows
// another and shows a picture. Formulas: ComfyUI's nodes of these names; rays as Plücker
// coordinates (Sitzmann et al., 2021). Stateless.
#pragma once

#include "plugins/vae/wan_nodes.h"

namespace heddle::vae {

namespace wan_ports {
inline constexpr const char* kCameraPoses[] = {
    "Static",         "Pan Up",  "Pan Down", "Pan Left",
    "Pan Right",      "Zoom In", "Zoom Out", "Anti Clockwise (ACW)",
    "ClockWise (CW)", nullptr};
inline constexpr Widget kCameraPose{.choices = kCameraPoses,
                                    .extra = R"({"default": "Static", "multiselect": false})",
                                    .type = "COMBO"};
// Whole numbers stand in `extra` where ComfyUI tells them so.
inline constexpr Widget kSpeed{.number = 1,
                               .min = 0,
                               .max = 10,
                               .step = 0.1,
                               .extra = R"({"min": 0})",
                               .flags = HEDDLE_PORT_OPTIONAL};
inline constexpr const char* kShare = R"({"advanced": true, "min": 0, "max": 1})";
// Of focal lengths, in sides of a picture of 16:9, and of the middle, in sides.
inline constexpr Widget kFocal{.number = 0.5,
                               .min = 0,
                               .max = 1,
                               .step = 1e-9,
                               .extra = kShare,
                               .flags = HEDDLE_PORT_OPTIONAL},
    kCentre{.number = 0.5,
            .min = 0,
            .max = 1,
            .step = 0.01,
            .extra = kShare,
            .flags = HEDDLE_PORT_OPTIONAL};
}  // namespace wan_ports

// Of each pixel of each frame the ray that a camera sees there: its moment and its direction, six
// numbers. Four frames of pixels are one of the result, the first is there four times:
// (1, 24, T, height, width), the numbers of a coordinate frame by frame.
struct WanCameraEmbedding {
  static constexpr Info info{"WanCameraEmbedding",
                             1,
                             "",
                             "model/conditioning/wan/camera",
                             "The path of a camera that moves evenly, as the rays that it sees.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<std::string> camera_pose{"camera_pose", wan_ports::kCameraPose};
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kLength};
  static constexpr Input<double> speed{"speed", wan_ports::kSpeed};
  static constexpr Input<double> fx{"fx", wan_ports::kFocal};
  static constexpr Input<double> fy{"fy", wan_ports::kFocal};
  static constexpr Input<double> cx{"cx", wan_ports::kCentre};
  static constexpr Input<double> cy{"cy", wan_ports::kCentre};
  static constexpr Output<Tensor> embedding{"camera_embedding", 0, "", "WAN_CAMERA_EMBEDDING"};
  static constexpr Output<std::int64_t> width_out{"width"};
  static constexpr Output<std::int64_t> height_out{"height"};
  static constexpr Output<std::int64_t> length_out{"length"};
  static constexpr auto ports = heddle::ports(camera_pose, width, height, length, speed, fx, fy, cx,
                                              cy, embedding, width_out, height_out, length_out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct WanCameraImageToVideo {
  static constexpr Info info{"WanCameraImageToVideo", 1, "", "conditioning/video_models",
                             "A video that begins with given frames and moves as a camera does, by "
                             "Wan Fun Camera."};
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
  static constexpr Input<Tensor> camera_conditions{
      "camera_conditions", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HOST,
      "Of WanCameraEmbedding, of the same size and length.", "WAN_CAMERA_EMBEDDING"};
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, width, height, length, batch_size, clip_vision_output,
                    start_image, camera_conditions, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct Wan22FunControlToVideo {
  static constexpr Info info{"Wan22FunControlToVideo", 1, "", "conditioning/video_models",
                             "A video that follows another one, and may show what a picture does, "
                             "by Wan 2.2 Fun Control."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kLength};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<Tensor> ref_image =
      wan_ports::picture("ref_image", "What the video shows; the first picture counts.");
  static constexpr Input<Tensor> control_video =
      wan_ports::picture("control_video", "What is followed: poses, edges, depths.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, width, height, length, batch_size, ref_image,
                    control_video, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
