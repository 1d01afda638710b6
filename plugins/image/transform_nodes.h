// Pictures cut, turned, put into frames, and told the size of. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

struct GetImageSize {
  static constexpr Info info{
      "GetImageSize",  1, "Get Image Size", "image", "How large pictures are, and how many.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", HEDDLE_PORT_PASS, "", "IMAGE"};
  static constexpr Input<std::string> unique_id{
      "unique_id", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "UNIQUE_ID"};
  static constexpr Output<std::int64_t> width_out{"width", 0, "", "INT"};
  static constexpr Output<std::int64_t> height_out{"height", 0, "", "INT"};
  static constexpr Output<std::int64_t> batch_size_out{"batch_size", 0, "", "INT"};
  static constexpr auto ports =
      heddle::ports(image, unique_id, width_out, height_out, batch_size_out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageCrop {
  static constexpr Info info{"ImageCrop",
                             1,
                             "Crop Image (DEPRECATED)",
                             "image/transform",
                             "A part of the picture; less where it leaves the picture.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 512, .min = 1, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 512, .min = 1, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> x{"x", Widget{.min = 0, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> y{"y", Widget{.min = 0, .max = 16384, .step = 1}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, width, height, x, y, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageFlip {
  static constexpr const char* kFlipMethods[] = {"x-axis: vertically", "y-axis: horizontally",
                                                 nullptr};

  static constexpr Info info{"ImageFlip",
                             1,
                             "ImageFlip",
                             "image/transform",
                             "Mirrored: rows or columns in reverse order.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::string> flip_method{"flip_method", {.choices = kFlipMethods}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, flip_method, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageRotate {
  static constexpr const char* kRotations[] = {"none", "90 degrees", "180 degrees", "270 degrees",
                                               nullptr};

  static constexpr Info info{
      "ImageRotate", 1, "ImageRotate", "image/transform", "Turned clockwise.", HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::string> rotation{"rotation", {.choices = kRotations}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, rotation, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageScaleToMaxDimension {
  static constexpr const char* kUpscaleMethods[] = {
      "area", "lanczos", "bilinear", "nearest-exact", "bilinear", "bicubic", nullptr};

  static constexpr Info info{"ImageScaleToMaxDimension",
                             1,
                             "ImageScaleToMaxDimension",
                             "image/upscaling",
                             "In the same aspect, with this longer side.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::string> upscale_method{"upscale_method",
                                                     {.choices = kUpscaleMethods}};
  static constexpr Input<std::int64_t> largest_size{
      "largest_size", Widget{.number = 512, .min = 0, .max = 16384, .step = 1}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, upscale_method, largest_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ResizeAndPadImage {
  static constexpr const char* kPaddingColors[] = {"white", "black", nullptr};
  static constexpr const char* kInterpolations[] = {"area",     "bicubic", "nearest-exact",
                                                    "bilinear", "lanczos", nullptr};

  static constexpr Info info{"ResizeAndPadImage",
                             1,
                             "Resize And Pad Image",
                             "image/transform",
                             "In the same aspect within this size, the rest in a colour.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> target_width{
      "target_width", Widget{.number = 512, .min = 1, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> target_height{
      "target_height", Widget{.number = 512, .min = 1, .max = 16384, .step = 1}};
  static constexpr Input<std::string> padding_color{
      "padding_color",
      {.choices = kPaddingColors, .extra = "{\"advanced\": true}", .type = "COMBO"}};
  static constexpr Input<std::string> interpolation{
      "interpolation",
      {.choices = kInterpolations, .extra = "{\"advanced\": true}", .type = "COMBO"}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(image, target_width, target_height, padding_color, interpolation, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct FluxKontextImageScale {
  static constexpr Info info{
      "FluxKontextImageScale",
      1,
      "",
      "advanced/conditioning/flux",
      "In the size that FLUX Kontext was trained on whose aspect is nearest.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
