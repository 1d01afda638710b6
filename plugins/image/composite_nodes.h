// Two pictures in one. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

struct ImageCompositeMasked {
  static constexpr Info info{"ImageCompositeMasked",
                             1,
                             "ImageCompositeMasked",
                             "image",
                             "The source at a place in the destination, where the mask is 1.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> destination{"destination", 0, "", "IMAGE"};
  static constexpr Input<Tensor> source{"source", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> x{"x", Widget{.min = 0, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> y{"y", Widget{.min = 0, .max = 16384, .step = 1}};
  static constexpr Input<bool> resize_source{"resize_source", Widget{}};
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_OPTIONAL, "", "MASK"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(destination, source, x, y, resize_source, mask, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageBlend {
  static constexpr const char* kBlendModes[] = {"normal",     "multiply",   "screen", "overlay",
                                                "soft_light", "difference", nullptr};

  static constexpr Info info{"ImageBlend",
                             1,
                             "",
                             "image/postprocessing",
                             "Two pictures mixed; the second takes the size of the first.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image1{"image1", 0, "", "IMAGE"};
  static constexpr Input<Tensor> image2{"image2", 0, "", "IMAGE"};
  static constexpr Input<double> blend_factor{
      "blend_factor", Widget{.number = 0.5, .min = 0, .max = 1, .step = 0.01}};
  static constexpr Input<std::string> blend_mode{"blend_mode",
                                                 {.choices = kBlendModes, .type = "COMBO"}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image1, image2, blend_factor, blend_mode, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct PorterDuffImageComposite {
  static constexpr const char* kModes[] = {
      "ADD",      "CLEAR",   "DARKEN",   "DST",     "DST_ATOP", "DST_IN", "DST_OUT",
      "DST_OVER", "LIGHTEN", "MULTIPLY", "OVERLAY", "SCREEN",   "SRC",    "SRC_ATOP",
      "SRC_IN",   "SRC_OUT", "SRC_OVER", "XOR",     nullptr};

  static constexpr Info info{"PorterDuffImageComposite",
                             1,
                             "Porter-Duff Image Composite",
                             "mask/compositing",
                             "Two pictures with masks of what is transparent in them, composited "
                             "in a mode of Porter and Duff.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> source{"source", 0, "", "IMAGE"};
  static constexpr Input<Tensor> source_alpha{"source_alpha", 0, "", "MASK"};
  static constexpr Input<Tensor> destination{"destination", 0, "", "IMAGE"};
  static constexpr Input<Tensor> destination_alpha{"destination_alpha", 0, "", "MASK"};
  static constexpr Input<std::string> mode{"mode",
                                           {.text = "DST", .choices = kModes, .type = "COMBO"}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr Output<Tensor> mask_out{"MASK", 0, "", "MASK"};
  static constexpr auto ports =
      heddle::ports(source, source_alpha, destination, destination_alpha, mode, out, mask_out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageStitch {
  static constexpr const char* kDirections[] = {"right", "down", "left", "up", nullptr};
  static constexpr const char* kSpacingColors[] = {"white", "black", "red",
                                                   "green", "blue",  nullptr};

  static constexpr Info info{"ImageStitch",
                             1,
                             "Stitch Images",
                             "image/transform",
                             "Two pictures side by side, with a strip of a colour between them.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image1{"image1", 0, "", "IMAGE"};
  static constexpr Input<std::string> direction{
      "direction", {.text = "right", .choices = kDirections, .type = "COMBO"}};
  static constexpr Input<bool> match_image_size{"match_image_size", Widget{.number = 1}};
  static constexpr Input<std::int64_t> spacing_width{
      "spacing_width", Widget{.min = 0, .max = 1024, .step = 2, .extra = "{\"advanced\": true}"}};
  static constexpr Input<std::string> spacing_color{"spacing_color",
                                                    {.text = "white",
                                                     .choices = kSpacingColors,
                                                     .extra = "{\"advanced\": true}",
                                                     .type = "COMBO"}};
  static constexpr Input<Tensor> image2{"image2", HEDDLE_PORT_OPTIONAL, "", "IMAGE"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(image1, direction, match_image_size, spacing_width, spacing_color, image2, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
