// Types of ports that several nodes here have in common.
#pragma once

#include <heddle/node.hpp>

namespace heddle::loaders {

// A value of any type; ports of one class that say so have the same.
struct Matching : Value {
  Matching(Value value) : Value(std::move(value)) {}  // NOLINT: meant to convert
};
// Inputs that a workflow names as it needs them ("values.a"): they are handed over as extra ones.
struct Growing : Value {
  Growing(Value value) : Value(std::move(value)) {}  // NOLINT: meant to convert
};
// One of several names, in the later of ComfyUI's two forms.
struct Choice : std::string {
  Choice(std::string name) : std::string(std::move(name)) {}  // NOLINT: meant to convert
};
// A name that a front end lets people choose, from a list that it alone has.
struct FreeChoice : Value {
  FreeChoice(Value value) : Value(std::move(value)) {}  // NOLINT: meant to convert
};
// What a front end draws for itself, and sends to nobody.
struct Drawn : Value {
  Drawn(Value value) : Value(std::move(value)) {}  // NOLINT: meant to convert
};

// A part of the options of /object_info that is null takes out what is there otherwise.
inline constexpr const char* kNoDefault = R"({"default": null})";
inline constexpr const char* kManyLines = R"({"multiline": true})";
inline constexpr const char* kOneLine = R"({"multiline": false})";

// A text that is to be written, on several lines.
inline constexpr Widget kLongText{.extra = kManyLines};
inline constexpr Widget kShortText{.extra = kOneLine};

inline constexpr std::uint32_t kOfLiterals = HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES;

}  // namespace heddle::loaders

namespace heddle {

template <>
struct Wire<loaders::Matching> : Wire<Value> {
  static constexpr const char* type = "COMFY_MATCHTYPE_V3";
};
template <>
struct Wire<loaders::Growing> : Wire<Value> {
  static constexpr const char* type = "COMFY_AUTOGROW_V3";
};
template <>
struct Wire<loaders::Choice> : Wire<std::string> {
  static constexpr const char* type = "COMBO";
};
template <>
struct Wire<loaders::Drawn> : Wire<Value> {
  static constexpr const char* type = "RESOLUTION_PREVIEW";
};
template <>
struct Wire<loaders::FreeChoice> : Wire<Value> {
  static constexpr const char* type = "COMBO";
};

}  // namespace heddle
