// Nodes that draw bounding boxes. On the host; stateless.
#pragma once

#include <heddle/abi/front_end.h>

#include "plugins/image/box_nodes.h"

namespace heddle::image {

struct DrawBBoxes {
  static constexpr Info info{"DrawBBoxes",
                             1,
                             "Draw BBoxes",
                             "image/detection",
                             "Boxes with their labels and scores, on pictures or on black.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> bboxes{"bboxes", kLinkedBoxes};
  static constexpr Input<Tensor> image{"image", HEDDLE_PORT_OPTIONAL, "", "IMAGE"};
  static constexpr Output<Tensor> out{"out_image", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(bboxes, image, out);
  static void execute(Context& ctx);
};

struct CreateBoundingBoxes {
  static constexpr Widget kSide{.number = 1024, .min = 64, .max = 16384, .step = 16};
  static constexpr Widget kEditor{.extra = R"({"default": [], "socketless": false})",
                                  .type = "BOUNDING_BOXES"};
  static constexpr Widget kLast{.extra = R"({"default": [], "socketless": true})",
                                .flags = HEDDLE_PORT_OPTIONAL,
                                .type = "BOUNDING_BOXES"};

  static constexpr Info info{
      "CreateBoundingBoxes",
      1,
      "Create Bounding Boxes",
      "utilities",
      "Boxes that were drawn in the editor, or those that are linked where they are others than "
      "the editor began with: as a preview, in pixels, and as elements of prompts.",
      HEDDLE_NODE_HOST | HEDDLE_NODE_SINK | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<std::int64_t> width{"width", kSide};
  static constexpr Input<std::int64_t> height{"height", kSide};
  static constexpr Input<Value> editor_state{"editor_state", kEditor};
  static constexpr Input<Tensor> background{"background", HEDDLE_PORT_OPTIONAL, "", "IMAGE"};
  static constexpr Input<Value> bboxes{"bboxes", HEDDLE_PORT_OPTIONAL, "",
                                       "BOUNDING_BOX,ARRAY,STRING"};
  static constexpr Input<Value> last_incoming{"last_incoming", kLast};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<Tensor> preview{"preview", 0, "", "IMAGE"};
  static constexpr Output<Value> boxes_out{"bboxes", 0, "", "BOUNDING_BOX"};
  static constexpr Output<Value> elements{"elements", 0, "", "ARRAY"};
  static constexpr auto ports =
      heddle::ports(width, height, editor_state, background, bboxes, last_incoming, prompt,
                    extra_pnginfo, preview, boxes_out, elements);
  static void execute(Context& ctx);
};

}  // namespace heddle::image
