// Nodes that choose among values, and that compute with numbers. On the host; stateless.
#pragma once

#include "value_types.h"

namespace heddle::loaders {

struct ComfySwitchNode {
  static constexpr Widget kBranch{
      .extra = R"({"template": {"template_id": "switch", "allowed_types": "*"}})",
      .flags = HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_LAZY};

  static constexpr Info info{"ComfySwitchNode",
                             1,
                             "If/Else Switch",
                             "utilities/logic",
                             "One of two values: the other is not made.",
                             kOfLiterals | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<bool> chosen{"switch", Widget{.extra = kNoDefault}};
  static constexpr Input<Matching> on_false{"on_false", kBranch};
  static constexpr Input<Matching> on_true{"on_true", kBranch};
  static constexpr Output<Matching> out{"output"};
  static constexpr auto ports = heddle::ports(chosen, on_false, on_true, out);
  static void need(Context& ctx) { ctx.want(ctx[chosen] ? on_true : on_false); }
  static void execute(Context& ctx);
};

struct ComfyPassOrNoneNode {
  static constexpr Widget kValue{
      .extra = R"({"template": {"template_id": "value", "allowed_types": "*"}})",
      .flags = HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL};

  static constexpr Info info{"ComfyPassOrNoneNode",
                             1,
                             "Pass or None",
                             "utilities/logic",
                             "A value, or another where it is missing.",
                             kOfLiterals};
  static constexpr Input<Matching> anything{"anything", kValue};
  static constexpr Input<Matching> otherwise{"default", kValue};
  static constexpr Output<Matching> out{"COMFY_MATCHTYPE_V3"};
  static constexpr Output<bool> is_none{"is_none"};
  static constexpr auto ports = heddle::ports(anything, otherwise, out, is_none);
  static void execute(Context& ctx);
};

struct ComfyNotNode {
  static constexpr Info info{"ComfyNotNode", 1, "Not", "utilities/logic", "", kOfLiterals};
  static constexpr Input<Value> value{"value", HEDDLE_PORT_PASS};
  static constexpr Output<bool> out{"BOOLEAN"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx);
};

inline constexpr Widget kTruths{
    .extra = R"({"template": {"input": {"required": {"value": ["*", {}]}}, "prefix": "value",
                 "min": 1, "max": 10}})"};

struct ComfyAndNode {
  static constexpr Info info{"ComfyAndNode",    1,  "And",
                             "utilities/logic", "", kOfLiterals | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Growing> values{"values", kTruths};
  static constexpr Output<bool> out{"BOOLEAN"};
  static constexpr auto ports = heddle::ports(values, out);
  static void execute(Context& ctx);
};

struct ComfyOrNode {
  static constexpr Info info{"ComfyOrNode",     1,  "Or",
                             "utilities/logic", "", kOfLiterals | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Growing> values{"values", kTruths};
  static constexpr Output<bool> out{"BOOLEAN"};
  static constexpr auto ports = heddle::ports(values, out);
  static void execute(Context& ctx);
};

struct ComfyMathExpression {
  static constexpr Widget kExpression{.text = "a + b", .extra = kManyLines};
  static constexpr Widget kValues{
      .extra = R"({"template": {"input": {"optional": {"value": ["FLOAT,INT,BOOLEAN", {}]}},
                   "names": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n",
                   "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z"], "min": 1}})"};

  static constexpr Info info{"ComfyMathExpression",
                             1,
                             "Math Expression",
                             "utilities",
                             "A number from others, as Python computes it.",
                             kOfLiterals | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<std::string> expression{"expression", kExpression};
  static constexpr Input<Growing> values{"values", kValues};
  static constexpr Output<double> real{"FLOAT"};
  static constexpr Output<Value> whole{"INT", 0, "", "INT"};
  static constexpr Output<bool> truth{"BOOL"};
  static constexpr auto ports = heddle::ports(expression, values, real, whole, truth);
  static void execute(Context& ctx);
};

struct ComfyNumberConvert {
  static constexpr Info info{"ComfyNumberConvert", 1,  "Convert Number",
                             "utilities",          "", kOfLiterals};
  static constexpr Input<Value> value{
      "value", Widget{.extra = R"({"display_name": "value"})", .type = "INT,FLOAT,STRING,BOOLEAN"}};
  static constexpr Output<double> real{"FLOAT"};
  static constexpr Output<Value> whole{"INT", 0, "", "INT"};
  static constexpr auto ports = heddle::ports(value, real, whole);
  static void execute(Context& ctx);
};

// The editor writes the position of the choice beside it, as `index`.
struct CustomCombo {
  static constexpr Widget kChoice{.extra = R"({"multiselect": false, "options": []})"};

  static constexpr Info info{"CustomCombo",
                             1,
                             "Custom Combo",
                             "utilities",
                             "A name out of a list that people write in the editor.",
                             kOfLiterals | HEDDLE_NODE_ANY_INPUT | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<FreeChoice> choice{"choice", kChoice};
  static constexpr Output<std::string> name{"STRING"};
  static constexpr Output<Value> index{"INDEX", 0, "", "INT"};
  static constexpr auto ports = heddle::ports(choice, name, index);
  static void execute(Context& ctx);
};

struct SeedNode {
  static constexpr Widget kSeed{.kind = HEDDLE_WIDGET_SEED,
                                .extra = R"({"default": null, "max": 9223372036854775807,
                   "control_after_generate": "fixed"})"};

  static constexpr Info info{"SeedNode", 1, "Seed", "utilities", "", kOfLiterals};
  static constexpr Input<std::uint64_t> seed{"seed", kSeed};
  static constexpr Output<std::uint64_t> out{"seed"};
  static constexpr auto ports = heddle::ports(seed, out);
  static void execute(Context& ctx) { ctx[out] = ctx[seed]; }
};

struct ResolutionSelector {
  static constexpr const char* kRatios[] = {"1:1 (Square)",
                                            "2:3 (Portrait Photo)",
                                            "3:2 (Photo)",
                                            "3:4 (Portrait Standard)",
                                            "4:3 (Standard)",
                                            "9:16 (Portrait Widescreen)",
                                            "16:9 (Widescreen)",
                                            "21:9 (Ultrawide)",
                                            nullptr};
  static constexpr Widget kRatio{.text = "1:1 (Square)", .choices = kRatios};
  static constexpr Widget kMegapixels{.number = 1, .min = 0.1, .max = 16, .step = 0.1};
  static constexpr Widget kMultiple{
      .number = 8, .min = 8, .max = 128, .step = 4, .extra = R"({"advanced": true})"};

  static constexpr Info info{"ResolutionSelector",
                             1,
                             "Resolution Selector",
                             "utilities",
                             "Width and height of a picture by its shape and its pixels.",
                             kOfLiterals};
  static constexpr Input<Choice> aspect_ratio{"aspect_ratio", kRatio};
  static constexpr Input<double> megapixels{"megapixels", kMegapixels};
  static constexpr Input<std::int64_t> multiple{"multiple", kMultiple};
  static constexpr Input<Drawn> preview{
      "preview", Widget{.extra = R"({"socketless": true})", .flags = HEDDLE_PORT_OPTIONAL}};
  static constexpr Output<std::int64_t> width{"width"};
  static constexpr Output<std::int64_t> height{"height"};
  static constexpr auto ports =
      heddle::ports(aspect_ratio, megapixels, multiple, preview, width, height);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
