// LoadImage and its like: picture files as IMAGE (B, H, W, 3) and MASK (B, H, W) f32 in host
// memory; B is 1, or the number of pictures of an animation. A picture of more than 178,956,970
// pixels is refused; HEDDLE_MOST_PIXELS in the environment sets another limit. The file is found
// below the input folder, or below the one that the name ends in: "cat.png [output]", "cat.png
// [temp]". All are cached by what the file holds.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

inline constexpr Widget kPictureFile{
    .source = "input", .kind = HEDDLE_WIDGET_FILE, .extra = "{\"image_upload\": true}"};

struct LoadImage {
  static constexpr Info info{"LoadImage",
                             1,
                             "Load Image",
                             "image",
                             "Reads a picture; the mask is 1 where it is transparent.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> image{"image", kPictureFile};
  static constexpr Output<Tensor> picture{"IMAGE", 0, "", "IMAGE"};
  static constexpr Output<Tensor> mask{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(image, picture, mask);
  static constexpr auto judged = heddle::judged(image);
  static Refusal validate(Validation& question);
  void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct LoadImageMask {
  static constexpr Info info{"LoadImageMask",
                             1,
                             "Load Image (as Mask)",
                             "mask",
                             "Reads one channel of a picture as a mask; alpha is inverted.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr const char* kChannels[] = {"alpha", "red", "green", "blue", nullptr};
  static constexpr Input<std::string> image{"image", kPictureFile};
  static constexpr Input<std::string> channel{"channel", {.choices = kChannels}};
  static constexpr Output<Tensor> mask{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(image, channel, mask);
  static constexpr auto judged = heddle::judged(image);
  static Refusal validate(Validation& question);
  void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

// Front ends ask the server for the names of the files in the output folder.
struct LoadImageOutput {
  static constexpr Widget kFile{
      .source = "input",
      .kind = HEDDLE_WIDGET_FILE,
      .extra = R"({"multiselect": null, "options": null, "image_upload": true,
                   "image_folder": "output",
                   "remote": {"route": "/internal/files/output", "refresh_button": true,
                              "control_after_refresh": "first"}})",
      .type = "COMBO"};

  static constexpr Info info{"LoadImageOutput",
                             1,
                             "Load Image (from Outputs)",
                             "image",
                             "Reads a picture that was saved: \"name.png [output]\".",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<std::string> image{"image", kFile};
  static constexpr Output<Tensor> picture{"IMAGE", 0, "", "IMAGE"};
  static constexpr Output<Tensor> mask{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(image, picture, mask);
  static constexpr auto judged = heddle::judged(image);
  static Refusal validate(Validation& question);
  void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

// A front end takes the picture, and uploads it before the workflow is run.
struct WebcamCapture {
  static constexpr Widget kSide{.max = 16384, .step = 1};

  static constexpr Info info{"WebcamCapture",
                             1,
                             "Webcam Capture",
                             "image",
                             "Reads a picture that a front end took with a camera.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> image{"image", Widget{.extra = "{}", .type = "WEBCAM"}};
  static constexpr Input<std::int64_t> width{"width", kSide};
  static constexpr Input<std::int64_t> height{"height", kSide};
  static constexpr Input<bool> capture_on_queue{"capture_on_queue", Widget{.number = 1}};
  static constexpr Output<Tensor> picture{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, width, height, capture_on_queue, picture);
  static constexpr auto judged = heddle::judged(image);
  static Refusal validate(Validation& question);
  void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::image
