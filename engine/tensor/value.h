// What travels along an edge: an immutable, counted value. The C ABI's heddle_value is this very
// object. Records keep their order; a key occurs once. Handles may be copied and dropped on any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "engine/tensor/tensor.h"

namespace heddle::engine {

class Model;  // floor 3: a block graph with its weights
using Value = Ref<const heddle_value>;

struct None {};
struct List {
  std::vector<Value> items;
  // Of an output that no port declares as a list, and that is one in this run: its readers are
  // called once for each item, as those of lists are.
  bool is_spread = false;
};
struct Record {
  std::vector<std::pair<std::string, Value>> fields;
  const Value* find(std::string_view key) const;
};
// Something only those who know the interface can use; drop(self) runs when the last holder is
// gone.
struct Object {
  Object(std::string interface_id, const void* table, void* self, void (*drop)(void*))
      : interface_id(std::move(interface_id)), table(table), self(self), drop(drop) {}
  Object(const Object&) = delete;
  ~Object() {
    if (drop != nullptr) drop(self);
  }
  const std::string interface_id;
  const void* const table;
  void* const self;
  void (*const drop)(void*);
};

// In the place of a value: whoever would read it is not called. Empty message: nobody is told.
struct Blocker {
  std::string message;
};

}  // namespace heddle::engine

struct heddle_value {
  using Content =
      std::variant<heddle::engine::None, bool, std::int64_t, std::uint64_t, double, std::string,
                   heddle::engine::Tensor, heddle::engine::List, heddle::engine::Record,
                   std::shared_ptr<const heddle::engine::Model>,
                   std::shared_ptr<const heddle::engine::Object>, heddle::engine::Blocker>;
  explicit heddle_value(Content content) : content(std::move(content)) {}
  explicit heddle_value(std::int64_t number) : content(number) {}
  mutable std::atomic<std::uint32_t> refs{1};
  const Content content;  // the alternatives stand in the order of HEDDLE_KIND_...
};

namespace heddle::engine {

Value make_value(heddle_value::Content content);
inline Value make_value(const char* text) { return make_value(std::string(text)); }
Value make_record(std::vector<std::pair<std::string, Value>> fields);

inline heddle_kind kind_of(const heddle_value& v) { return heddle_kind(v.content.index()); }
inline bool is_spread(const heddle_value& v) {
  const auto* list = std::get_if<List>(&v.content);
  return list != nullptr && list->is_spread;
}
inline bool is_blocker(const heddle_value& v) { return kind_of(v) == HEDDLE_KIND_BLOCKER; }
// The value itself where it is a blocker, or the first that is an item of the list that it is.
const heddle_value* find_blocker(const heddle_value& v);
std::string_view kind_name(heddle_kind kind);
std::string describe(
    const heddle_value& value);  // "the integer 5", "a record of samples, noise_mask"

// The content, or an Error(invalid_argument) "expected a string, got the integer 5".
bool get_bool(const heddle_value&);
std::int64_t get_int(const heddle_value&);    // an unsigned one that fits, too
std::uint64_t get_uint(const heddle_value&);  // an integer that is not negative, too
double get_float(const heddle_value&);        // integers, too
const std::string& get_str(const heddle_value&);
const Tensor& get_tensor(const heddle_value&);
const std::shared_ptr<const Model>& get_model(const heddle_value&);

// JSON to values and back. null, booleans, numbers, strings, lists, records; to_json throws for
// anything else.
Value from_json(const Json& json);
Json to_json(const heddle_value& value);

// Visits every tensor in lists and records; map_tensors rebuilds only what changes, and shares the
// rest.
void for_each_tensor(const heddle_value& value, const std::function<void(const Tensor&)>& visit);
Value map_tensors(const Value& value, const std::function<Tensor(const Tensor&)>& change);

// Adds kind and content of numbers, strings, lists and records to a hash. Returns false, and adds
// nothing of use, when there is a tensor, model or object inside: those are identified by how they
// were made.
bool hash_value(const heddle_value& value, Hasher& hasher);

}  // namespace heddle::engine
