// Types of ports that several nodes here have in common.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/port_types.h"

namespace heddle::loaders {

using blocks::Choice;
using blocks::Growing;
using blocks::Matching;

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
struct Wire<loaders::Drawn> : Wire<Value> {
  static constexpr const char* type = "RESOLUTION_PREVIEW";
};
template <>
struct Wire<loaders::FreeChoice> : Wire<Value> {
  static constexpr const char* type = "COMBO";
};

}  // namespace heddle
