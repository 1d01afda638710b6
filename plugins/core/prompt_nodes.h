// Nodes that compose prompts out of small settings. On the host; stateless.
#pragma once

#include "value_types.h"

namespace heddle::loaders {

struct CameraAngle {
  static constexpr Info info{"CameraAngle",
                             1,
                             "Compose Camera Angle Prompt",
                             "utilities",
                             "Where a camera stands, as words and as numbers of the 3D viewer.",
                             kOfLiterals};
  static constexpr Input<std::int64_t> horizontal_angle{"horizontal_angle", Widget{.max = 360}};
  static constexpr Input<std::int64_t> vertical_angle{"vertical_angle",
                                                      Widget{.min = -30, .max = 60}};
  static constexpr Input<double> zoom{"zoom", Widget{.number = 5, .max = 10, .step = 0.1}};
  static constexpr Input<Value> image{"image", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS, "",
                                      "IMAGE"};
  static constexpr Output<Value> camera_info{"camera_info", 0, "", "LOAD3D_CAMERA"};
  static constexpr Output<std::string> prompt{"prompt"};
  static constexpr auto ports =
      heddle::ports(horizontal_angle, vertical_angle, zoom, image, camera_info, prompt);
  static void execute(Context& ctx);
};

struct BuildJsonPromptIdeogram {
  static constexpr Widget kStyles{.extra =
                                      R"({"options": [{"key": "none", "inputs": {"required": {}}},
          {"key": "photo", "inputs": {"required":
              {"photo": ["STRING", {"default": "", "multiline": false}]}}},
          {"key": "art_style", "inputs": {"required":
              {"art_style": ["STRING", {"default": "", "multiline": false}]}}}]})"};
  static constexpr Widget kParagraph{.extra = R"({"default": "", "multiline": true})"};
  static constexpr Widget kWords{.extra = R"({"default": "", "multiline": false})"};
  static constexpr Widget kColours{.extra = R"({"default": [], "socketless": false})",
                                   .type = "COLORS"};

  static constexpr Info info{"BuildJsonPromptIdeogram",
                             1,
                             "Build JSON Prompt (Ideogram)",
                             "text",
                             "The prompt of Ideogram 4 as named values.",
                             kOfLiterals | HEDDLE_NODE_EXPERIMENTAL | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> element{"element", 0, "", "ARRAY"};
  static constexpr Input<std::string> high_level_description{"high_level_description", kParagraph};
  static constexpr Input<std::string> background{"background", kParagraph};
  static constexpr Input<blocks::Variant> style{"style", kStyles};
  static constexpr Input<std::string> aesthetics{"aesthetics", kWords};
  static constexpr Input<std::string> lighting{"lighting", kWords};
  static constexpr Input<std::string> medium{"medium", kWords};
  static constexpr Input<Value> color_palette{"color_palette", kColours};
  static constexpr Output<Value> prompt{"prompt", 0, "", "DICT"};
  static constexpr auto ports = heddle::ports(element, high_level_description, background, style,
                                              aesthetics, lighting, medium, color_palette, prompt);
  static void execute(Context& ctx);
};

// The table is as the publisher writes it: docs.bfl.ai, FLUX 3, "Bounding boxes".
struct Flux3LayoutPrompt {
  static constexpr Info info{
      "Flux3LayoutPrompt",
      1,
      "FLUX 3 Image Layout Prompt",
      "model/conditioning",
      "A prompt of FLUX 3 with a table of boxes behind it, which the prompt names <obj_1>, <obj_2> "
      "... in their order: JSON, as the documentation of Black Forest Labs has it (id, bbox, desc; "
      "words to be written stand in quotes). Palettes are left out.",
      kOfLiterals};
  static constexpr Input<std::string> prompt_in{"prompt", kLongText};
  static constexpr Input<Value> element{"element", 0, "", "ARRAY"};
  static constexpr Output<std::string> prompt{"prompt"};
  static constexpr auto ports = heddle::ports(prompt_in, element, prompt);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
