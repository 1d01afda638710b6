// SaveImage and PreviewImage: pictures as PNG files with the workflow in them. Both take IMAGE
// (B, H, W, C) f32 with C from 1 to 4 in host memory, write one file per picture, and leave no part
// of a file when they fail or are cancelled; files finished before that stay.
#pragma once

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
  static constexpr auto ports = heddle::ports(images, filename_prefix, prompt, extra_pnginfo);
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
  static constexpr auto ports = heddle::ports(images, prompt, extra_pnginfo);
  void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
