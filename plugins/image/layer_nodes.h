// Layers: pictures with places, modes and opacities, in one picture. A LAYERS value is a record
// {version: 1, layers: [{image, mask, name, x, y, w, h, z_index, opacity, blend_mode, rotation (in
// radians, clockwise), flip_h, flip_v, visible}], canvas: [width, height]}; all but the image may
// be missing. On the host; stateless.
#pragma once

#include <heddle/abi/front_end.h>
#include <heddle/node.hpp>

#include "plugins/image/layer_blend.h"

namespace heddle::image {

inline constexpr std::uint32_t kOfLayers = HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL;

struct AddLayer {
  static constexpr std::uint32_t kOptional = HEDDLE_PORT_OPTIONAL;
  static constexpr Widget kName{.extra = R"({"default": "", "multiline": false})",
                                .flags = kOptional};
  static constexpr Widget kPlace{.min = -16384, .max = 16384, .flags = kOptional};
  static constexpr Widget kOpacity{.number = 1, .max = 1, .step = 0.01, .flags = kOptional};
  static constexpr Widget kMode{
      .text = "normal", .choices = kLayerModes, .flags = kOptional, .type = "COMBO"};
  static constexpr Widget kAngle{.min = -360, .max = 360, .step = 1, .flags = kOptional};
  static constexpr Widget kSide{.max = 16384, .flags = kOptional};
  static constexpr Widget kDepth{.min = -1000, .max = 1000, .flags = kOptional};
  static constexpr Widget kFlip{.extra = R"({"default": false})", .flags = kOptional};

  static constexpr Info info{"AddLayer", 1, "Add Layer", "image", "One more layer, on top.",
                             kOfLayers};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<Value> layers{"layers", kOptional, "", "LAYERS"};
  static constexpr Input<Tensor> mask{"mask", kOptional, "1 where it is transparent.", "MASK"};
  static constexpr Input<std::string> name{"name", kName};
  static constexpr Input<std::int64_t> x{"x", kPlace};
  static constexpr Input<std::int64_t> y{"y", kPlace};
  static constexpr Input<double> opacity{"opacity", kOpacity};
  static constexpr Input<std::string> blend_mode{"blend_mode", kMode};
  static constexpr Input<double> rotation{"rotation", kAngle, "In degrees, clockwise."};
  static constexpr Input<std::int64_t> width{"width", kSide, "0: that of the picture."};
  static constexpr Input<std::int64_t> height{"height", kSide, "0: that of the picture."};
  static constexpr Input<std::int64_t> z_index{"z_index", kDepth};
  static constexpr Input<bool> flip_h{"flip_h", kFlip};
  static constexpr Input<bool> flip_v{"flip_v", kFlip};
  static constexpr Output<Value> out{"LAYERS", 0, "", "LAYERS"};
  static constexpr auto ports =
      heddle::ports(image, layers, mask, name, x, y, opacity, blend_mode, rotation, width, height,
                    z_index, flip_h, flip_v, out);
  static void execute(Context& ctx);
};

struct LayersFromBoundingBoxes {
  static constexpr std::uint32_t kOptional = HEDDLE_PORT_OPTIONAL;
  static constexpr Widget kCrop{.number = 1, .extra = R"({"default": true})", .flags = kOptional};
  static constexpr Widget kSide{.max = 16384, .flags = kOptional};

  static constexpr Info info{"LayersFromBoundingBoxes",
                             1,
                             "Layers From Bounding Boxes",
                             "image",
                             "A layer of each picture of a batch, where its box is.",
                             kOfLayers};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<Value> bboxes{"bboxes", 0, "", "BOUNDING_BOX,ARRAY,STRING"};
  static constexpr Input<Tensor> mask{"mask", kOptional, "1 where it is transparent.", "MASK"};
  static constexpr Input<Value> layers{"layers", kOptional, "", "LAYERS"};
  static constexpr Input<bool> crop_to_content{"crop_to_content", kCrop};
  static constexpr Input<std::int64_t> canvas_width{"canvas_width", kSide};
  static constexpr Input<std::int64_t> canvas_height{"canvas_height", kSide};
  static constexpr Output<Value> out{"LAYERS", 0, "", "LAYERS"};
  static constexpr auto ports =
      heddle::ports(image, bboxes, mask, layers, crop_to_content, canvas_width, canvas_height, out);
  static void execute(Context& ctx);
};

struct ImageCompositor {
  static constexpr Widget kEditor{.extra = R"({"default": {}, "socketless": true})",
                                  .type = "COMPOSITOR"};

  static constexpr Info info{
      "ImageCompositor",
      1,
      "Create Layered Image",
      "image",
      "All layers in one picture. What was arranged in the editor holds as long as the layers are "
      "the ones that it was arranged for.",
      kOfLayers | HEDDLE_NODE_SINK | HEDDLE_NODE_INTERMEDIATE_OUTPUT};
  static constexpr Input<Value> layers{"layers", 0, "", "LAYERS"};
  static constexpr Input<Value> compositor{"compositor", kEditor};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr Output<Tensor> mask{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(layers, compositor, prompt, extra_pnginfo, out, mask);
  static void execute(Context& ctx);
};

}  // namespace heddle::image
