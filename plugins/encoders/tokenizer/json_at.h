// A JSON value together with where it stands, so that every complaint names file and field. Getters
// check the kind and throw TextError. Values, one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "json_view.h"

namespace heddle::text {

class JsonAt {
 public:
  JsonAt(JsonView view, std::string where) : view_(view), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  JsonKind kind() const { return view_.kind(); }

  // Members of an object. get() fails when there is none; find() also takes null for none.
  JsonAt get(std::string_view key) const;
  std::optional<JsonAt> find(std::string_view key) const;

  // Members of an array or an object.
  std::size_t size() const { return view_.size(); }
  JsonAt item(std::size_t index) const;
  std::string_view key(std::size_t index) const { return view_.key(index); }

  std::string_view string() const;  // valid UTF-8
  double number() const;
  std::int32_t id() const;  // 0 to 2^31 - 1
  bool boolean() const;
  char32_t character() const;    // a string of one character
  const JsonAt& array() const;   // this, when it is one
  const JsonAt& object() const;  // this, when it is one

  // The member, or `fallback` when it is missing or null.
  bool boolean_or(std::string_view key, bool fallback) const;
  std::string string_or(std::string_view key, std::string_view fallback) const;

  [[noreturn]] void fail(const std::string& what) const;  // "where: what"

 private:
  void expect(JsonKind kind) const;

  JsonView view_;
  std::string where_;
};

}  // namespace heddle::text
