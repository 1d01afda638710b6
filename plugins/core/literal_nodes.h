// A literal as a node, so that several inputs can share it. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::loaders {

struct PrimitiveInt {
  // The greatest 64-bit numbers are no doubles, so the range is given to front ends as text.
  static constexpr Widget kValue{.extra =
                                     R"({"min": -9223372036854775807, "max": 9223372036854775807,
                   "control_after_generate": "fixed", "default": null})"};

  static constexpr Info info{"PrimitiveInt",        1,  "Int",
                             "utilities/primitive", "", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::int64_t> value{"value", kValue};
  static constexpr Output<std::int64_t> out{"INT"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx) { ctx[out] = ctx[value]; }
};

struct PrimitiveFloat {
  static constexpr Widget kValue{
      .extra = R"({"min": -9223372036854775807, "max": 9223372036854775807, "step": 0.1,
                   "default": null})"};

  static constexpr Info info{"PrimitiveFloat",      1,  "Float",
                             "utilities/primitive", "", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<double> value{"value", kValue};
  static constexpr Output<double> out{"FLOAT"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx) { ctx[out] = ctx[value]; }
};

struct PrimitiveString {
  static constexpr Widget kValue{.extra = R"({"multiline": false})"};

  static constexpr Info info{"PrimitiveString", 1,  "String",
                             "utils/primitive", "", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> value{"value", kValue};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx) { ctx[out] = ctx[value]; }
};

struct PrimitiveStringMultiline {
  static constexpr Widget kValue{.extra = R"({"multiline": true})"};

  static constexpr Info info{
      "PrimitiveStringMultiline", 1,  "String (Multiline)",
      "utils/primitive",          "", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> value{"value", kValue};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx) { ctx[out] = ctx[value]; }
};

struct PrimitiveBoolean {
  static constexpr Info info{"PrimitiveBoolean", 1,  "Boolean",
                             "utils/primitive",  "", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<bool> value{"value", Widget{.extra = R"({"default": null})"}};
  static constexpr Output<bool> out{"BOOLEAN"};
  static constexpr auto ports = heddle::ports(value, out);
  static void execute(Context& ctx) { ctx[out] = ctx[value]; }
};

}  // namespace heddle::loaders
