// SaveText: texts as files. On the host; stateless.
#pragma once

#include "value_types.h"

namespace heddle::loaders {

struct SaveText {
  static constexpr const char* kFormats[] = {"txt", "csv", "md", "json", nullptr};
  static constexpr Widget kGiven{.extra = R"({"forceInput": true, "multiline": false})"};

  static constexpr Info info{"SaveText",
                             1,
                             "Save Text",
                             "text",
                             "Saves a text in the output folder; JSON is written with indents.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<std::string> text{"text", kGiven};
  static constexpr Input<std::string> filename_prefix{"filename_prefix",
                                                      Widget{.text = "ComfyUI", .extra = kOneLine}};
  static constexpr Input<Choice> format{"format", Widget{.text = "txt", .choices = kFormats}};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<std::string> out{"text"};
  static constexpr auto ports =
      heddle::ports(text, filename_prefix, format, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
