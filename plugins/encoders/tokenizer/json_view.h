// A parsed JSON document as the tokenizer library wants to see it: a cheap copyable view of one
// node, over any parser that can fill a table of nine functions. The library has no JSON parser of
// its own; plugins adapt the engine's values, tests adapt RapidJSON. The document outlives its
// views. Views are values; reading is as thread-safe as the document below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::text {

enum class JsonKind { kNull, kBool, kNumber, kString, kArray, kObject };

// What an adapter provides. `node` is the parser's own pointer, opaque here. Functions are only
// called on nodes of the kind they are for, with indices in range.
struct JsonTable {
  JsonKind (*kind)(const void* node);
  std::size_t (*size)(const void* node);  // array, object: members
  const void* (*item)(const void* node,
                      std::size_t index);  // array, object: a member's value, in O(1)
  std::string_view (*key)(const void* node, std::size_t index);  // object: a member's name, in O(1)
  const void* (*find)(const void* node, std::string_view key);   // object: the value, or nullptr
  std::string_view (*as_string)(const void* node);               // string: may contain NUL
  double (*as_double)(const void* node);                         // number
  std::optional<std::int64_t> (*as_int)(const void* node);  // number: absent when not a whole one
  bool (*as_bool)(const void* node);                        // bool
};

class JsonView {
 public:
  JsonView(const JsonTable* table, const void* node) : table_(table), node_(node) {}

  JsonKind kind() const { return table_->kind(node_); }
  bool is(JsonKind kind) const { return table_->kind(node_) == kind; }
  std::size_t size() const { return table_->size(node_); }
  JsonView item(std::size_t index) const { return {table_, table_->item(node_, index)}; }
  std::string_view key(std::size_t index) const { return table_->key(node_, index); }
  std::optional<JsonView> find(std::string_view key) const {
    const void* found = table_->find(node_, key);
    if (found == nullptr) return std::nullopt;
    return JsonView(table_, found);
  }
  std::string_view as_string() const { return table_->as_string(node_); }
  double as_double() const { return table_->as_double(node_); }
  std::optional<std::int64_t> as_int() const { return table_->as_int(node_); }
  bool as_bool() const { return table_->as_bool(node_); }

 private:
  const JsonTable* table_;  // static
  const void* node_;        // borrowed from the document
};

}  // namespace heddle::text
