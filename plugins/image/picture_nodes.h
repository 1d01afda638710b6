// Small nodes on IMAGE (B, H, W, C) and MASK (B, H, W): constants, inversion, batches. They work
// where their inputs are, by ops of the device.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

inline constexpr double kMostSide = 16384;  // pixels, ComfyUI's limit of widgets

struct ImageInvert {
  static constexpr Info info{"ImageInvert", 1, "Invert Image", "image", "1 - x."};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct InvertMask {
  static constexpr Info info{"InvertMask", 1, "InvertMask", "mask", "1 - x."};
  static constexpr Input<Tensor> mask{"mask", 0, "", "MASK"};
  static constexpr Output<Tensor> out{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(mask, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageBatch {
  static constexpr Info info{"ImageBatch",
                             2,
                             "Batch Images (DEPRECATED)",
                             "image/batch",
                             "The pictures of two batches, one after another, in the size of the "
                             "first; what does not fit its aspect is cut off.",
                             HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Tensor> image1{"image1", 0, "", "IMAGE"};
  static constexpr Input<Tensor> image2{"image2", 0, "", "IMAGE"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image1, image2, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageFromBatch {
  static constexpr Info info{"ImageFromBatch", 1, "Get Image from Batch", "image/batch",
                             "Some pictures of a batch; a negative index counts from its end."};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> batch_index{"batch_index", {.min = -16384, .max = 16384}};
  static constexpr Input<std::int64_t> length{"length", {.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, batch_index, length, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct RepeatImageBatch {
  static constexpr Info info{"RepeatImageBatch", 1, "RepeatImageBatch", "image/batch",
                             "A batch, again and again."};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> amount{"amount", {.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, amount, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct EmptyImage {
  static constexpr Info info{"EmptyImage", 1, "EmptyImage", "image", "Pictures of one colour."};
  static constexpr Input<std::int64_t> width{
      "width", {.number = 512, .min = 1, .max = kMostSide, .step = 1}};
  static constexpr Input<std::int64_t> height{
      "height", {.number = 512, .min = 1, .max = kMostSide, .step = 1}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  {.number = 1, .min = 1, .max = 4096}};
  static constexpr Input<std::int64_t> color{
      "color",
      {.min = 0, .max = 0xffffff, .step = 1, .extra = "{\"display\": \"color\"}"},
      "0xRRGGBB"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(width, height, batch_size, color, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct SolidMask {
  static constexpr Info info{"SolidMask", 1, "SolidMask", "mask", "A mask of one value."};
  static constexpr Input<double> value{"value", {.number = 1, .min = 0, .max = 1, .step = 0.01}};
  static constexpr Input<std::int64_t> width{
      "width", {.number = 512, .min = 1, .max = kMostSide, .step = 1}};
  static constexpr Input<std::int64_t> height{
      "height", {.number = 512, .min = 1, .max = kMostSide, .step = 1}};
  static constexpr Output<Tensor> out{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(value, width, height, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
