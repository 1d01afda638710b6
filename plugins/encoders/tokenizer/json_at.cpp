#include "json_at.h"

#include <limits>

#include "text_error.h"
#include "utf8.h"

namespace heddle::text {
namespace {

constexpr std::size_t kLongestKeyShown = 40;  // bytes

std::string_view name_of(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return "a boolean";
    case JsonKind::kNumber:
      return "a number";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kObject:
      return "an object";
  }
  return "something else";
}

std::string shown(std::string_view key) { return valid_utf8(key.substr(0, kLongestKeyShown)); }

}  // namespace

void JsonAt::fail(const std::string& what) const { throw TextError(where_ + ": " + what); }

void JsonAt::expect(JsonKind kind) const {
  if (view_.is(kind)) return;
  fail("expects " + std::string(name_of(kind)) + ", got " + std::string(name_of(view_.kind())) +
       ". Correct the field or download the file again.");
}

JsonAt JsonAt::get(std::string_view key) const {
  expect(JsonKind::kObject);
  if (const auto found = view_.find(key)) return {*found, where_ + "." + std::string(key)};
  fail("has no field '" + std::string(key) + "'. Add it or download the file again.");
}

std::optional<JsonAt> JsonAt::find(std::string_view key) const {
  expect(JsonKind::kObject);
  const auto found = view_.find(key);
  if (!found || found->is(JsonKind::kNull)) return std::nullopt;
  return JsonAt(*found, where_ + "." + std::string(key));
}

JsonAt JsonAt::item(std::size_t index) const {
  const bool named = view_.is(JsonKind::kObject);
  const std::string step =
      named ? "." + shown(view_.key(index)) : "[" + std::to_string(index) + "]";
  return {view_.item(index), where_ + step};
}

std::string_view JsonAt::string() const {
  expect(JsonKind::kString);
  const std::string_view text = view_.as_string();
  if (!is_valid_utf8(text)) fail("the string is not valid UTF-8. Download the file again.");
  return text;
}

double JsonAt::number() const {
  expect(JsonKind::kNumber);
  return view_.as_double();
}

std::int32_t JsonAt::id() const {
  expect(JsonKind::kNumber);
  const auto value = view_.as_int();
  if (!value || *value < 0 || *value > std::numeric_limits<std::int32_t>::max() - 1) {
    fail("expects a token id from 0 to 2147483646, got " + std::to_string(view_.as_double()) +
         ". Correct the field or download the file again.");
  }
  return static_cast<std::int32_t>(*value);
}

bool JsonAt::boolean() const {
  expect(JsonKind::kBool);
  return view_.as_bool();
}

char32_t JsonAt::character() const {
  const std::string_view text = string();
  if (text.empty() || decode_at(text, 0).size != text.size()) {
    fail("expects one character, got '" + shown(text) + "'. Correct the field.");
  }
  return decode_at(text, 0).value;
}

const JsonAt& JsonAt::array() const {
  expect(JsonKind::kArray);
  return *this;
}

const JsonAt& JsonAt::object() const {
  expect(JsonKind::kObject);
  return *this;
}

bool JsonAt::boolean_or(std::string_view key, bool fallback) const {
  const auto found = find(key);
  return found ? found->boolean() : fallback;
}

std::string JsonAt::string_or(std::string_view key, std::string_view fallback) const {
  const auto found = find(key);
  return std::string(found ? found->string() : fallback);
}

}  // namespace heddle::text
