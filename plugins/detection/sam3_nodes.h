// plugins/detection/sam3_nodes.h - the nodes of SAM 3 (sam3.h). Stateless; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

// As ComfyUI: pictures are stretched to the model's square. Points make one mask of each picture; a
// text those of the things that it names and, before each other, as many as it allows; boxes
// without a text a mask each. Masks of a text are refined on their part of the picture by the
// mask decoder and united with what they were. A mask is 0 or 1, of the pictures' size.
struct Sam3Detect {
  static constexpr Widget kModel{.extra = R"({"display_name": "model"})", .type = "MODEL"};
  static constexpr Widget kImage{.extra = R"({"display_name": "image"})", .type = "IMAGE"};
  static constexpr Widget kThreshold{
      .number = 0.5, .min = 0, .max = 1, .step = 0.01, .extra = R"({"display_name": "threshold"})"};
  static constexpr Widget kIterations{
      .number = 2, .min = 0, .max = 5, .extra = R"({"display_name": "refine_iterations"})"};
  static constexpr Widget kApart{.extra = R"({"display_name": "individual_masks"})"};
  static constexpr Widget kTexts{.extra = R"({"display_name": "conditioning"})",
                                 .flags = HEDDLE_PORT_OPTIONAL,
                                 .type = "CONDITIONING"};
  static constexpr Widget kBoxes{
      .extra = R"({"display_name": "bboxes", "default": {"x": 0, "y": 0, "width": 512,
                   "height": 512}, "socketless": true, "forceInput": true})",
      .flags = HEDDLE_PORT_OPTIONAL,
      .type = "BOUNDING_BOX"};
  static constexpr Widget kOfIt{.extra = R"({"display_name": "positive_coords", "forceInput": true,
                                             "multiline": false})",
                                .flags = HEDDLE_PORT_OPTIONAL};
  static constexpr Widget kNotOfIt{
      .extra = R"({"display_name": "negative_coords", "forceInput": true, "multiline": false})",
      .flags = HEDDLE_PORT_OPTIONAL};

  static constexpr Info info{"SAM3_Detect", 1, "SAM3 Detect", "image/detection",
                             "Finds what a text names in pictures, or what points or boxes mark."};
  static constexpr Input<Value> model{"model", kModel, "Of SAM 3's checkpoint."};
  static constexpr Input<Tensor> image{"image", kImage, "(B, H, W, C) f32, 0 to 1"};
  static constexpr Input<double> threshold{"threshold", kThreshold};
  static constexpr Input<std::int64_t> refine_iterations{"refine_iterations", kIterations};
  static constexpr Input<bool> individual_masks{"individual_masks", kApart};
  static constexpr Input<Value> conditioning{"conditioning", kTexts};
  static constexpr Input<Value> bboxes{"bboxes", kBoxes};
  static constexpr Input<std::string> positive_coords{"positive_coords", kOfIt};
  static constexpr Input<std::string> negative_coords{"negative_coords", kNotOfIt};
  static constexpr Output<Tensor> masks{"masks", 0, "(B, H, W), or one for each object", "MASK"};
  static constexpr Output<Value> boxes{"bboxes", 0, "A list for each picture.", "BOUNDING_BOX"};
  static constexpr auto ports =
      heddle::ports(model, image, threshold, refine_iterations, individual_masks, conditioning,
                    bboxes, positive_coords, negative_coords, masks, boxes);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::detection
