// Pictures in other sizes: ImageScale, ImageScaleBy, ImageScaleToTotalPixels, ImagePadForOutpaint.
// On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

inline constexpr const char* kScaleMethods[] = {"nearest-exact", "bilinear", "area",
                                                "bicubic",       "lanczos",  nullptr};
inline constexpr const char* kCrops[] = {"disabled", "center", nullptr};

struct ImageScale {
  static constexpr Widget kSide{.number = 512, .min = 0, .max = 16384, .step = 1};

  static constexpr Info info{"ImageScale",
                             1,
                             "Upscale Image",
                             "image/upscaling",
                             "In this size; a side of 0 follows from the other. With crop center, "
                             "what does not fit the new aspect is cut off first.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::string> upscale_method{"upscale_method", {.choices = kScaleMethods}};
  static constexpr Input<std::int64_t> width{"width", kSide};
  static constexpr Input<std::int64_t> height{"height", kSide};
  static constexpr Input<std::string> crop{"crop", {.choices = kCrops}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, upscale_method, width, height, crop, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageScaleBy {
  static constexpr Info info{
      "ImageScaleBy",  1, "Upscale Image By", "image/upscaling", "Both sides times a factor.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::string> upscale_method{"upscale_method", {.choices = kScaleMethods}};
  static constexpr Input<double> scale_by{"scale_by",
                                          {.number = 1, .min = 0.01, .max = 8, .step = 0.01}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, upscale_method, scale_by, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageScaleToTotalPixels {
  static constexpr Info info{"ImageScaleToTotalPixels",
                             2,
                             "Scale Image to Total Pixels",
                             "image/upscaling",
                             "In the same aspect, with about so many times 1024 x 1024 pixels; "
                             "both sides multiples of the steps.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::string> upscale_method{"upscale_method",
                                                     {.choices = kScaleMethods, .type = "COMBO"}};
  static constexpr Input<double> megapixels{"megapixels",
                                            {.number = 1, .min = 0.01, .max = 16, .step = 0.01}};
  static constexpr Input<std::int64_t> resolution_steps{
      "resolution_steps", {.number = 1, .min = 1, .max = 256, .extra = "{\"advanced\": true}"}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(image, upscale_method, megapixels, resolution_steps, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImagePadForOutpaint {
  static constexpr Widget kPadding{.min = 0, .max = 16384, .step = 8};

  static constexpr Info info{
      "ImagePadForOutpaint",
      1,
      "Pad Image for Outpainting",
      "image/transform",
      "Grey around the picture, and a mask of it that fades into the picture "
      "over `feathering` pixels.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> left{"left", kPadding};
  static constexpr Input<std::int64_t> top{"top", kPadding};
  static constexpr Input<std::int64_t> right{"right", kPadding};
  static constexpr Input<std::int64_t> bottom{"bottom", kPadding};
  static constexpr Input<std::int64_t> feathering{
      "feathering",
      {.number = 40, .min = 0, .max = 16384, .step = 1, .extra = "{\"advanced\": true}"}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr Output<Tensor> mask{"MASK", 0, "", "MASK"};
  static constexpr auto ports =
      heddle::ports(image, left, top, right, bottom, feathering, out, mask);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
