// Nodes of bounding boxes on pictures. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

// Of sockets that only take links.
inline constexpr Widget kLinkedBoxes{
    .extra = R"({"default": {"x": 0, "y": 0, "width": 512, "height": 512}, "socketless": true,
                 "forceInput": true})",
    .type = "BOUNDING_BOX"};

struct CropByBBoxes {
  static constexpr const char* kAspects[] = {"stretch", "pad", nullptr};
  static constexpr Widget kSide{.number = 512, .min = 64, .max = 4096, .step = 8};
  static constexpr Widget kPadding{.max = 1024, .step = 1};
  static constexpr Widget kAspect{.text = "stretch", .choices = kAspects, .type = "COMBO"};

  static constexpr Info info{"CropByBBoxes",
                             1,
                             "Crop By Bounding Boxes",
                             "image/transform",
                             "Of each picture the part that holds all of its boxes, in one size.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<Value> bboxes{"bboxes", kLinkedBoxes};
  static constexpr Input<std::int64_t> output_width{"output_width", kSide};
  static constexpr Input<std::int64_t> output_height{"output_height", kSide};
  static constexpr Input<std::int64_t> padding{"padding", kPadding};
  static constexpr Input<std::string> keep_aspect{"keep_aspect", kAspect};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(image, bboxes, output_width, output_height, padding, keep_aspect, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::image
