// Pictures as files with the workflow in them: PNG, animated PNG and animated WebP. All take IMAGE
// (B, H, W, C) f32 with C from 1 to 4 (WebP: 3 or 4) in host memory, write one file per picture or
// one animation, hand the pictures on as they came, and leave no part
// of a file when they fail or are cancelled; files finished before that stay. Animations take the
// frames of a video as they are decoded.
#pragma once

#include <heddle/abi/parts.h>
#include <heddle/node.hpp>

namespace heddle::image {

struct SaveImage {
  static constexpr Info info{"SaveImage",
                             1,
                             "Save Image",
                             "image",
                             "Saves pictures as PNG files in the output folder.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> images{"images", HEDDLE_PORT_HOST, "The pictures.", "IMAGE"};
  static constexpr Input<std::string> filename_prefix{
      "filename_prefix",
      {.text = "ComfyUI"},
      "How the files' names begin. May hold subfolders and %date:yyyy-MM-dd%, %year%, %width%, "
      "%Node.widget% and the like."};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, filename_prefix, prompt, extra_pnginfo, out);
  void execute(Context& ctx);
  static void infer(Infer& question);
};

struct PreviewImage {
  static constexpr Info info{"PreviewImage",
                             1,
                             "Preview Image",
                             "image",
                             "Saves pictures in the folder of previews.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> images{"images", HEDDLE_PORT_HOST, "", "IMAGE"};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, prompt, extra_pnginfo, out);
  void execute(Context& ctx);
  static void infer(Infer& question);
};

struct MaskPreview {
  static constexpr Info info{"MaskPreview",
                             1,
                             "Preview Mask",
                             "image/mask",
                             "Saves masks as grey pictures in the folder of previews.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_HOST, "", "MASK"};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<Tensor> out{"mask", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(mask, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct SaveAnimatedPNG {
  static constexpr Info info{"SaveAnimatedPNG",
                             1,
                             "Save Animated PNG",
                             "image",
                             "Saves pictures as one animated PNG file in the output folder.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> images{"images", HEDDLE_PORT_HOST | HEDDLE_PORT_PARTS, "",
                                        "IMAGE"};
  static constexpr Input<std::string> filename_prefix{
      "filename_prefix", Widget{.text = "ComfyUI", .extra = "{\"multiline\": false}"}};
  static constexpr Input<double> fps{"fps",
                                     Widget{.number = 6, .min = 0.01, .max = 1000, .step = 0.01}};
  static constexpr Input<std::int64_t> compress_level{
      "compress_level", Widget{.number = 4, .min = 0, .max = 9, .extra = "{\"advanced\": true}"}};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(images, filename_prefix, fps, compress_level, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct SaveAnimatedWEBP {
  static constexpr const char* kMethods[] = {"default", "fastest", "slowest", nullptr};

  static constexpr Info info{"SaveAnimatedWEBP",
                             1,
                             "Save Animated WEBP",
                             "image",
                             "Saves pictures as one animated WebP file in the output folder.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> images{"images", HEDDLE_PORT_HOST | HEDDLE_PORT_PARTS, "",
                                        "IMAGE"};
  static constexpr Input<std::string> filename_prefix{
      "filename_prefix", Widget{.text = "ComfyUI", .extra = "{\"multiline\": false}"}};
  static constexpr Input<double> fps{"fps",
                                     Widget{.number = 6, .min = 0.01, .max = 1000, .step = 0.01}};
  static constexpr Input<bool> lossless{"lossless", Widget{.number = 1}};
  static constexpr Input<std::int64_t> quality{"quality",
                                               Widget{.number = 80, .min = 0, .max = 100}};
  static constexpr Input<std::string> method{"method", {.choices = kMethods, .type = "COMBO"}};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, filename_prefix, fps, lossless, quality,
                                              method, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
