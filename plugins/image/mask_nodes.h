// Masks made of pictures, of other masks, and put into pictures. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

struct MaskToImage {
  static constexpr Info info{
      "MaskToImage",   1, "Convert Mask to Image", "mask", "A grey picture of the mask.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> mask{"mask", 0, "", "MASK"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(mask, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageToMask {
  static constexpr const char* kChannels[] = {"red", "green", "blue", "alpha", nullptr};

  static constexpr Info info{
      "ImageToMask",   1, "Convert Image to Mask", "mask", "One channel of a picture.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::string> channel{"channel", {.choices = kChannels}};
  static constexpr Output<Tensor> out{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(image, channel, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageColorToMask {
  static constexpr Info info{"ImageColorToMask",
                             1,
                             "Convert Image Color to Mask",
                             "image/mask",
                             "1 where a picture has this colour, 0xRRGGBB, in steps of 1/255.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> color{
      "color", Widget{.min = 0, .max = 16777215, .step = 1, .extra = "{\"display\": \"number\"}"}};
  static constexpr Output<Tensor> out{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(image, color, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct CropMask {
  static constexpr Info info{
      "CropMask",      1, "CropMask", "mask", "A part of the mask; less where it leaves the mask.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> mask{"mask", 0, "", "MASK"};
  static constexpr Input<std::int64_t> x{"x", Widget{.min = 0, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> y{"y", Widget{.min = 0, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 512, .min = 1, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 512, .min = 1, .max = 16384, .step = 1}};
  static constexpr Output<Tensor> out{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(mask, x, y, width, height, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct MaskComposite {
  static constexpr const char* kOperations[] = {"multiply", "add", "subtract", "and",
                                                "or",       "xor", nullptr};

  static constexpr Info info{"MaskComposite",
                             1,
                             "MaskComposite",
                             "mask",
                             "Two masks in one, the second at a place in the first. and, or and "
                             "xor are of rounded values.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> destination{"destination", 0, "", "MASK"};
  static constexpr Input<Tensor> source{"source", 0, "", "MASK"};
  static constexpr Input<std::int64_t> x{"x", Widget{.min = 0, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> y{"y", Widget{.min = 0, .max = 16384, .step = 1}};
  static constexpr Input<std::string> operation{"operation", {.choices = kOperations}};
  static constexpr Output<Tensor> out{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(destination, source, x, y, operation, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct FeatherMask {
  static constexpr Info info{"FeatherMask",
                             1,
                             "FeatherMask",
                             "mask",
                             "Fades out towards the edges, over so many pixels.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> mask{"mask", 0, "", "MASK"};
  static constexpr Input<std::int64_t> left{"left", Widget{.min = 0, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> top{"top", Widget{.min = 0, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> right{"right", Widget{.min = 0, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> bottom{"bottom", Widget{.min = 0, .max = 16384, .step = 1}};
  static constexpr Output<Tensor> out{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(mask, left, top, right, bottom, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct GrowMask {
  static constexpr Info info{
      "GrowMask",
      1,
      "Grow Mask",
      "image/mask",
      "Grows what is selected by so many pixels; shrinks it where the number is negative.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> mask{"mask", 0, "", "MASK"};
  static constexpr Input<std::int64_t> expand{"expand",
                                              Widget{.min = -16384, .max = 16384, .step = 1}};
  static constexpr Input<bool> tapered_corners{
      "tapered_corners", Widget{.number = 1, .extra = "{\"advanced\": true}"}};
  static constexpr Output<Tensor> out{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(mask, expand, tapered_corners, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ThresholdMask {
  static constexpr Info info{
      "ThresholdMask", 1, "ThresholdMask", "mask", "1 where the mask is above the value.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> mask{"mask", 0, "", "MASK"};
  static constexpr Input<double> value{"value",
                                       Widget{.number = 0.5, .min = 0, .max = 1, .step = 0.01}};
  static constexpr Output<Tensor> out{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(mask, value, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct JoinImageWithAlpha {
  static constexpr Info info{"JoinImageWithAlpha",
                             1,
                             "Join Image with Alpha",
                             "mask/compositing",
                             "A picture with an alpha channel: 1 less the mask.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<Tensor> alpha{"alpha", 0, "", "MASK"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, alpha, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct SplitImageWithAlpha {
  static constexpr Info info{"SplitImageWithAlpha",
                             1,
                             "Split Image with Alpha",
                             "mask/compositing",
                             "The colours of a picture, and 1 less its alpha.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr Output<Tensor> mask_out{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(image, out, mask_out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
