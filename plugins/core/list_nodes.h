// Nodes of lists and of small values that front ends edit: colours, boxes, curves. On the host;
// stateless.
#pragma once

#include <heddle/abi/front_end.h>

#include "value_types.h"

namespace heddle::loaders {

struct CreateList {
  static constexpr Widget kItems{
      .extra = R"({"template": {"input": {"required": {"input": ["COMFY_MATCHTYPE_V3",
                   {"template": {"template_id": "type", "allowed_types": "*"}}]}},
                   "prefix": "input", "min": 1, "max": 10}})",
      .flags = HEDDLE_PORT_LIST | HEDDLE_PORT_PASS};

  static constexpr Info info{"CreateList",
                             1,
                             "Create List",
                             "utilities",
                             "One list of everything that is linked.",
                             kOfLiterals | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Growing> inputs{"inputs", kItems};
  static constexpr Output<Matching> list{"list", HEDDLE_PORT_LIST};
  static constexpr auto ports = heddle::ports(inputs, list);
  static void execute(Context& ctx);
};

struct GetItemFromList {
  static constexpr Info info{"GetItemFromList", 1,  "Get Item From List",
                             "utilities",       "", kOfLiterals};
  static constexpr Input<Value> list{"list", HEDDLE_PORT_LIST | HEDDLE_PORT_PASS};
  static constexpr Input<std::int64_t> index{"index", Widget{},
                                             "From 0; from the end when negative."};
  static constexpr Output<Value> item{"*", HEDDLE_PORT_LIST};
  static constexpr auto ports = heddle::ports(list, index, item);
  static void execute(Context& ctx);
};

struct ColorToRGBInt {
  static constexpr Widget kColour{
      .text = "#ffffff", .extra = R"({"socketless": true})", .type = "COLOR"};

  static constexpr Info info{"ColorToRGBInt",
                             1,
                             "Color Picker",
                             "utilities",
                             "A colour, \"#rrggbb\" or \"#rrggbbaa\", as a number.",
                             kOfLiterals};
  static constexpr Input<std::string> color{"color", kColour};
  static constexpr Output<std::int64_t> rgb_int{"rgb_int"};
  static constexpr Output<std::string> hex{"hex", 0, "", "COLOR"};
  static constexpr Output<double> alpha{"alpha"};
  static constexpr auto ports = heddle::ports(color, rgb_int, hex, alpha);
  static void execute(Context& ctx);
};

struct PrimitiveBoundingBox {
  static constexpr Widget kPlace{.max = 16384};
  static constexpr Widget kSide{.number = 512, .min = 1, .max = 16384};

  static constexpr Info info{"PrimitiveBoundingBox", 1,  "Bounding Box",
                             "utilities/primitive",  "", kOfLiterals};
  static constexpr Input<std::int64_t> x{"x", kPlace};
  static constexpr Input<std::int64_t> y{"y", kPlace};
  static constexpr Input<std::int64_t> width{"width", kSide};
  static constexpr Input<std::int64_t> height{"height", kSide};
  static constexpr Output<Value> box{"BOUNDING_BOX", 0, "", "BOUNDING_BOX"};
  static constexpr auto ports = heddle::ports(x, y, width, height, box);
  static void execute(Context& ctx);
};

struct CurveEditor {
  static constexpr Widget kCurve{.extra = R"({"default": {"points": [[0.0, 0.0], [1.0, 1.0]],
                   "interpolation": "monotone_cubic"}, "socketless": true})",
                                 .type = "CURVE"};

  static constexpr Info info{"CurveEditor",
                             1,
                             "Curve Editor",
                             "utilities",
                             "A curve that people draw in the editor.",
                             kOfLiterals | HEDDLE_NODE_INTERMEDIATE_OUTPUT};
  static constexpr Input<Value> curve{"curve", kCurve};
  static constexpr Input<Value> histogram{"histogram", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS, "",
                                          "HISTOGRAM"};
  static constexpr Output<Value> out{"curve", 0, "", "CURVE"};
  static constexpr auto ports = heddle::ports(curve, histogram, out);
  static void execute(Context& ctx);
};

inline constexpr Widget kIndent{.number = 2, .max = 8};

struct ConvertArrayToString {
  static constexpr Info info{"ConvertArrayToString",
                             1,
                             "Convert Array to String",
                             "text",
                             "A list as JSON; indent 0: in one line.",
                             kOfLiterals};
  static constexpr Input<Value> array{"array", 0, "", "ARRAY"};
  static constexpr Input<std::int64_t> indent{"indent", kIndent};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(array, indent, out);
  static void execute(Context& ctx);
};

struct ConvertDictionaryToString {
  static constexpr Info info{"ConvertDictionaryToString",
                             1,
                             "Convert Dictionary to String",
                             "text",
                             "Named values as JSON; indent 0: in one line.",
                             kOfLiterals};
  static constexpr Input<Value> dictionary{"dictionary", 0, "", "DICT"};
  static constexpr Input<std::int64_t> indent{"indent", kIndent};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(dictionary, indent, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
