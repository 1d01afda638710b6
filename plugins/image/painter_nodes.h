// Painter and ImageCropToMask. On the host.
#pragma once

#include <heddle/abi/front_end.h>
#include <heddle/node.hpp>

namespace heddle::image {

struct Painter {
  static constexpr Widget kMask{
      .extra = R"({"widgetType": "PAINTER", "image_upload": true, "default": "", "socketless": true,
                   "multiline": false})"};
  static constexpr Widget kSide{.number = 512,
                                .min = 64,
                                .max = 4096,
                                .step = 64,
                                .extra = R"({"hidden": true, "socketless": true})"};
  static constexpr Widget kColour{
      .text = "#000000", .extra = R"({"socketless": true})", .type = "COLOR"};

  static constexpr Info info{"Painter",
                             1,
                             "Painter",
                             "image",
                             "What was painted in the editor, over a picture or a colour; the mask "
                             "is 1 where something was painted.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_INTERMEDIATE_OUTPUT};
  static constexpr Input<std::string> mask{"mask", kMask};
  static constexpr Input<std::int64_t> width{"width", kSide};
  static constexpr Input<std::int64_t> height{"height", kSide};
  static constexpr Input<std::string> bg_color{"bg_color", kColour};
  static constexpr Input<Tensor> image{"image", HEDDLE_PORT_OPTIONAL, "", "IMAGE"};
  static constexpr Output<Tensor> picture{"IMAGE", 0, "", "IMAGE"};
  static constexpr Output<Tensor> painted{"MASK", 0, "", "MASK"};
  static constexpr auto ports =
      heddle::ports(mask, width, height, bg_color, image, picture, painted);
  void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
  static void infer(Infer& question);
};

struct ImageCropToMask {
  static constexpr Widget kSide{.number = 1024, .min = 64, .max = 4096, .step = 8};
  static constexpr Widget kColour{
      .text = "#000000", .extra = R"({"socketless": true})", .type = "COLOR"};

  static constexpr Info info{"ImageCropToMask",
                             1,
                             "Crop Image to Mask",
                             "image/transform",
                             "The part of a picture that the mask selects, on a colour, in this "
                             "size.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> images{"images", 0, "", "IMAGE"};
  static constexpr Input<Tensor> masks{"masks", 0, "", "MASK"};
  static constexpr Input<std::int64_t> width{"width", kSide};
  static constexpr Input<std::int64_t> height{"height", kSide};
  static constexpr Input<double> pad_factor{"pad_factor",
                                            {.number = 1, .min = 1, .max = 2, .step = 0.01}};
  static constexpr Input<std::int64_t> grow_mask{"grow_mask", {.min = -32, .max = 32, .step = 1}};
  static constexpr Input<std::string> background{"background", kColour};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(images, masks, width, height, pad_factor, grow_mask, background, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
