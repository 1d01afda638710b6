// plugins/blocks/port_types.h - types of ports that nodes of several plugins have in common.
#pragma once

#include <heddle/node.hpp>

namespace heddle::blocks {

// A value of any type; ports of one template (Widget::extra) have the same.
struct Matching : Value {
  Matching(Value value) : Value(std::move(value)) {}  // NOLINT: meant to convert
};
// Inputs that a workflow names as it needs them ("values.a"): they are handed over as extra ones
// (plugins/blocks/dynamic_inputs.h).
struct Growing : Value {
  Growing(Value value) : Value(std::move(value)) {}  // NOLINT: meant to convert
};
// Rows of inputs of the same names ("loras.0.strength"): extra ones, too.
struct Grouped : Value {
  Grouped(Value value) : Value(std::move(value)) {}  // NOLINT: meant to convert
};
// One of several names, each with inputs of its own ("mode.width"): extra ones, too.
struct Variant : Value {
  Variant(Value value) : Value(std::move(value)) {}  // NOLINT: meant to convert
};
// One of several names, in the later of ComfyUI's two forms.
struct Choice : std::string {
  Choice(std::string name) : std::string(std::move(name)) {}  // NOLINT: meant to convert
};

}  // namespace heddle::blocks

namespace heddle {

template <>
struct Wire<blocks::Matching> : Wire<Value> {
  static constexpr const char* type = "COMFY_MATCHTYPE_V3";
};
template <>
struct Wire<blocks::Growing> : Wire<Value> {
  static constexpr const char* type = "COMFY_AUTOGROW_V3";
};
template <>
struct Wire<blocks::Grouped> : Wire<Value> {
  static constexpr const char* type = "COMFY_DYNAMICGROUP_V3";
};
template <>
struct Wire<blocks::Variant> : Wire<Value> {
  static constexpr const char* type = "COMFY_DYNAMICCOMBO_V3";
};
template <>
struct Wire<blocks::Choice> : Wire<std::string> {
  static constexpr const char* type = "COMBO";
};

}  // namespace heddle
