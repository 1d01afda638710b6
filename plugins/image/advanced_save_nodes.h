// SaveImageAdvanced: pictures as PNG of 8 or 16 bits, as OpenEXR, and as AVIF, still or moving. On
// the host; stateless.
#pragma once

#include "plugins/blocks/port_types.h"

namespace heddle::image {

struct SaveImageAdvanced {
  static constexpr Widget kFormat{.extra = R"({"options": [
      {"key": "png", "inputs": {"required": {
        "bit_depth": ["COMBO", {"advanced": true, "default": "8-bit", "multiselect": false,
                                "options": ["8-bit", "16-bit"]}],
        "input_color_space": ["COMBO", {"advanced": true, "default": "sRGB", "multiselect": false,
                                        "options": ["sRGB"]}]}}},
      {"key": "exr", "inputs": {"required": {
        "bit_depth": ["COMBO", {"advanced": true, "default": "32-bit float", "multiselect": false,
                                "options": ["32-bit float"]}],
        "input_color_space": ["COMBO", {"advanced": true, "default": "sRGB", "multiselect": false,
                                        "options": ["sRGB", "HDR", "linear"]}]}}},
      {"key": "avif", "inputs": {"required": {
        "bit_depth": ["COMBO", {"multiselect": false,
                                "options": ["auto", "8-bit YUV420", "10-bit YUV420"],
                                "default": "auto", "advanced": true}],
        "input_color_space": ["COMBO", {"multiselect": false,
                                        "options": ["sRGB", "HDR", "HDR PQ"],
                                        "default": "sRGB", "advanced": true}],
        "crf": ["INT", {"default": 18, "min": 1, "max": 63, "advanced": true}],
        "save_mode": ["COMFY_DYNAMICCOMBO_V3", {"display_name": "save mode", "options": [
          {"key": "still images", "inputs": {"required": {}}},
          {"key": "animated", "inputs": {"required": {
            "fps": ["FLOAT", {"default": 6.0, "min": 0.01, "max": 1000.0, "step": 0.01}],
            "loop_count": ["INT", {"default": 0, "min": 0, "max": 1000,
                                   "advanced": true}]}}}]}]}}}]})"};

  static constexpr Info info{"SaveImageAdvanced",
                             1,
                             "Save Image (Advanced)",
                             "image",
                             "Saves pictures in the output folder, in a format of choice.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Tensor> images{"images", HEDDLE_PORT_HOST, "", "IMAGE"};
  static constexpr Input<std::string> filename_prefix{
      "filename_prefix", {.text = "ComfyUI", .extra = R"({"multiline": false})"}};
  static constexpr Input<blocks::Variant> format{"format", kFormat};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(images, filename_prefix, format, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
