// RapidJSON behind JsonView, for tests and fuzzers.
#pragma once

#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "plugins/encoders/tokenizer/json_view.h"
#include "plugins/encoders/tokenizer/text_error.h"

namespace heddle::text {

inline const rapidjson::Value& rapid(const void* node) {
  return *static_cast<const rapidjson::Value*>(node);
}

inline std::string_view rapid_string(const rapidjson::Value& value) {
  return {value.GetString(), value.GetStringLength()};
}

inline JsonKind rapid_kind(const void* node) {
  switch (rapid(node).GetType()) {
    case rapidjson::kNullType:
      return JsonKind::kNull;
    case rapidjson::kFalseType:
    case rapidjson::kTrueType:
      return JsonKind::kBool;
    case rapidjson::kObjectType:
      return JsonKind::kObject;
    case rapidjson::kArrayType:
      return JsonKind::kArray;
    case rapidjson::kStringType:
      return JsonKind::kString;
    default:
      return JsonKind::kNumber;
  }
}

inline std::size_t rapid_size(const void* node) {
  const auto& value = rapid(node);
  return value.IsArray() ? value.Size() : value.IsObject() ? value.MemberCount() : 0;
}

inline const void* rapid_item(const void* node, std::size_t index) {
  const auto& value = rapid(node);
  const auto at = static_cast<rapidjson::SizeType>(index);
  return value.IsArray() ? &value[at] : &(value.MemberBegin() + at)->value;
}

inline std::string_view rapid_key(const void* node, std::size_t index) {
  return rapid_string((rapid(node).MemberBegin() + static_cast<std::ptrdiff_t>(index))->name);
}

inline const void* rapid_find(const void* node, std::string_view key) {
  const auto& value = rapid(node);
  for (auto member = value.MemberBegin(); member != value.MemberEnd(); ++member) {
    if (rapid_string(member->name) == key) return &member->value;
  }
  return nullptr;
}

inline std::string_view rapid_as_string(const void* node) { return rapid_string(rapid(node)); }
inline double rapid_as_double(const void* node) { return rapid(node).GetDouble(); }
inline bool rapid_as_bool(const void* node) { return rapid(node).GetBool(); }

inline std::optional<std::int64_t> rapid_as_int(const void* node) {
  if (!rapid(node).IsInt64()) return std::nullopt;
  return rapid(node).GetInt64();
}

inline constexpr JsonTable kRapidTable{rapid_kind,      rapid_size,   rapid_item,
                                       rapid_key,       rapid_find,   rapid_as_string,
                                       rapid_as_double, rapid_as_int, rapid_as_bool};

// Parses `json` and calls `use(view)` while the document lives. Malformed JSON is a TextError.
template <typename Use>
auto with_json(std::string_view json, Use use) {
  rapidjson::Document document;
  // Iterative: a deep document must not overflow the stack. Full precision: scores decide ties.
  document.Parse<rapidjson::kParseFullPrecisionFlag | rapidjson::kParseIterativeFlag>(json.data(),
                                                                                      json.size());
  if (document.HasParseError()) {
    throw TextError("tokenizer.json: byte " + std::to_string(document.GetErrorOffset()) + ": " +
                    rapidjson::GetParseError_En(document.GetParseError()));
  }
  return use(JsonView(&kRapidTable, static_cast<const rapidjson::Value*>(&document)));
}

}  // namespace heddle::text
