// SaveSVGNode: drawings as files. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

// An SVG value is the text of a file, or a list of such texts.
struct SaveSVGNode {
  static constexpr Info info{"SaveSVGNode",
                             1,
                             "Save SVG",
                             "image",
                             "Saves drawings in the output folder, with the workflow in them.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<Value> svg{"svg", 0, "", "SVG"};
  static constexpr Input<std::string> filename_prefix{
      "filename_prefix", {.text = "svg/ComfyUI", .extra = R"({"multiline": false})"}};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<Value> out{"svg", 0, "", "SVG"};
  static constexpr auto ports = heddle::ports(svg, filename_prefix, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::image
