// Nodes that show pictures, or tell something of them: ImageCompare, ImageCropV2, ImageHistogram.
// On the host; stateless.
#pragma once

#include <heddle/abi/front_end.h>
#include <heddle/node.hpp>

namespace heddle::image {

struct ImageCompare {
  static constexpr Widget kView{.extra = R"({"socketless": true})", .type = "IMAGECOMPARE"};

  static constexpr Info info{
      "ImageCompare",
      1,
      "Compare Images",
      "image",
      "Saves two batches in the folder of previews, to be seen side by side.",
      HEDDLE_NODE_SINK | HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> compare_view{"compare_view", kView};
  static constexpr Input<Tensor> image_a{"image_a", HEDDLE_PORT_OPTIONAL, "", "IMAGE"};
  static constexpr Input<Tensor> image_b{"image_b", HEDDLE_PORT_OPTIONAL, "", "IMAGE"};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr auto ports =
      heddle::ports(compare_view, image_a, image_b, prompt, extra_pnginfo);
  static void execute(Context& ctx);
};

struct ImageCropV2 {
  static constexpr Widget kRegion{
      .extra = R"({"default": {"x": 0, "y": 0, "width": 512, "height": 512}, "socketless": true,
                   "component": "ImageCrop"})",
      .type = "BOUNDING_BOX"};

  static constexpr Info info{"ImageCropV2",
                             1,
                             "Crop Image",
                             "image/transform",
                             "A part of a picture; less where it leaves the picture.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_INTERMEDIATE_OUTPUT};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<Value> crop_region{"crop_region", kRegion};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, crop_region, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageHistogram {
  static constexpr Info info{"ImageHistogram",
                             1,
                             "Image Histogram",
                             "utilities",
                             "How often each of 256 levels is in the first picture.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Output<Value> rgb{"rgb", 0, "", "HISTOGRAM"};
  static constexpr Output<Value> luminance{"luminance", 0, "", "HISTOGRAM"};
  static constexpr Output<Value> red{"red", 0, "", "HISTOGRAM"};
  static constexpr Output<Value> green{"green", 0, "", "HISTOGRAM"};
  static constexpr Output<Value> blue{"blue", 0, "", "HISTOGRAM"};
  static constexpr auto ports = heddle::ports(image, rgb, luminance, red, green, blue);
  static void execute(Context& ctx);
};

}  // namespace heddle::image
