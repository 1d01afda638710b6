#include "engine/tensor/value.h"

#include <limits>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

[[noreturn]] void expected(std::string_view what, const heddle_value& got) {
  throw Error(Code::invalid_argument, cat("expected ", what, ", got ", describe(got)));
}

}  // namespace

const Value* Record::find(std::string_view key) const {
  for (const auto& [name, value] : fields)
    if (name == key) return &value;
  return nullptr;
}

Value make_value(heddle_value::Content content) {
  // One kind for a number whatever made it: unsigned only above the signed range.
  if (const auto* big = std::get_if<std::uint64_t>(&content);
      big != nullptr && std::in_range<std::int64_t>(*big))
    content = std::int64_t(*big);
  return Value::adopt(new heddle_value(std::move(content)));
}

Value make_record(std::vector<std::pair<std::string, Value>> fields) {
  return make_value(Record{std::move(fields)});
}

const heddle_value* find_blocker(const heddle_value& v) {
  if (is_blocker(v)) return &v;
  const auto* list = std::get_if<List>(&v.content);
  if (list == nullptr) return nullptr;
  for (const Value& item : list->items)
    if (is_blocker(*item)) return item.get();
  return nullptr;
}

std::string_view kind_name(heddle_kind kind) {
  static constexpr std::string_view names[] = {
      "nothing",  "a boolean", "an integer", "an unsigned integer",
      "a number", "a string",  "a tensor",   "a list",
      "a record", "a model",   "an object",  "an execution blocker"};
  return kind >= 0 && std::size_t(kind) < std::size(names) ? names[kind]
                                                           : "an unknown kind of value";
}

std::string describe(const heddle_value& value) {
  switch (kind_of(value)) {
    case HEDDLE_KIND_BOOL:
      return std::get<bool>(value.content) ? "the boolean true" : "the boolean false";
    case HEDDLE_KIND_INT:
      return cat("the integer ", std::get<std::int64_t>(value.content));
    case HEDDLE_KIND_UINT:
      return cat("the integer ", std::get<std::uint64_t>(value.content));
    case HEDDLE_KIND_FLOAT:
      return cat("the number ", std::get<double>(value.content));
    case HEDDLE_KIND_STR:
      return cat("the string ", quote(std::get<std::string>(value.content)));
    case HEDDLE_KIND_TENSOR:
      return cat("a tensor ", describe(std::get<Tensor>(value.content)->info));
    case HEDDLE_KIND_LIST:
      return cat("a list of ", std::get<List>(value.content).items.size());
    case HEDDLE_KIND_RECORD: {
      std::vector<std::string> keys;
      for (const auto& [key, field] : std::get<Record>(value.content).fields) keys.push_back(key);
      return keys.empty() ? "an empty record" : cat("a record of ", clip(join(keys, ", "), 200));
    }
    case HEDDLE_KIND_OBJECT:
      return cat("an object ",
                 quote(std::get<std::shared_ptr<const Object>>(value.content)->interface_id));
    default:
      return std::string(kind_name(kind_of(value)));
  }
}

bool get_bool(const heddle_value& v) {
  if (const bool* x = std::get_if<bool>(&v.content)) return *x;
  expected("a boolean", v);
}

std::int64_t get_int(const heddle_value& v) {
  if (const auto* x = std::get_if<std::int64_t>(&v.content)) return *x;
  expected(
      std::holds_alternative<std::uint64_t>(v.content) ? "an integer below 2^63" : "an integer", v);
}

std::uint64_t get_uint(const heddle_value& v) {
  if (const auto* x = std::get_if<std::uint64_t>(&v.content)) return *x;
  if (const auto* x = std::get_if<std::int64_t>(&v.content); x != nullptr && *x >= 0)
    return std::uint64_t(*x);
  expected("an integer that is not negative", v);
}

double get_float(const heddle_value& v) {
  if (const auto* x = std::get_if<double>(&v.content)) return *x;
  if (const auto* x = std::get_if<std::int64_t>(&v.content)) return double(*x);
  if (const auto* x = std::get_if<std::uint64_t>(&v.content)) return double(*x);
  expected("a number", v);
}

const std::string& get_str(const heddle_value& v) {
  if (const auto* x = std::get_if<std::string>(&v.content)) return *x;
  expected("a string", v);
}

const Tensor& get_tensor(const heddle_value& v) {
  if (const auto* x = std::get_if<Tensor>(&v.content)) return *x;
  expected("a tensor", v);
}

const std::shared_ptr<const Model>& get_model(const heddle_value& v) {
  if (const auto* x = std::get_if<std::shared_ptr<const Model>>(&v.content)) return *x;
  expected("a model", v);
}

Value from_json(const Json& json) {
  switch (json.kind()) {
    case Json::Kind::null:
      return make_value(None{});
    case Json::Kind::boolean:
      return make_value(json.as_bool());
    case Json::Kind::integer:
      return make_value(json.as_int64());
    case Json::Kind::unsigned_integer:
      return make_value(json.as_uint64());
    case Json::Kind::real:
      return make_value(json.as_double());
    case Json::Kind::string:
      return make_value(json.as_string());
    case Json::Kind::array: {
      List list;
      list.items.reserve(json.size());
      for (const Json& item : json.as_array()) list.items.push_back(from_json(item));
      return make_value(std::move(list));
    }
    case Json::Kind::object:
      break;
  }
  Record record;
  record.fields.reserve(json.size());
  for (const Json::Member& member : json.members())
    record.fields.emplace_back(member.key, from_json(member.value));
  return make_value(std::move(record));
}

Json to_json(const heddle_value& value) {
  switch (kind_of(value)) {
    case HEDDLE_KIND_NONE:
      return Json();
    case HEDDLE_KIND_BOOL:
      return Json(std::get<bool>(value.content));
    case HEDDLE_KIND_INT:
      return Json(std::get<std::int64_t>(value.content));
    case HEDDLE_KIND_UINT:
      return Json(std::get<std::uint64_t>(value.content));
    case HEDDLE_KIND_FLOAT:
      return Json(std::get<double>(value.content));
    case HEDDLE_KIND_STR:
      return Json(std::get<std::string>(value.content));
    case HEDDLE_KIND_LIST: {
      Json array = Json::array();
      for (const Value& item : std::get<List>(value.content).items) array.push(to_json(*item));
      return array;
    }
    case HEDDLE_KIND_RECORD: {
      Json object = Json::object();
      for (const auto& [key, field] : std::get<Record>(value.content).fields)
        object.set(key, to_json(*field));
      return object;
    }
    default:
      expected("a value that JSON can hold", value);
  }
}

void for_each_tensor(const heddle_value& value, const std::function<void(const Tensor&)>& visit) {
  if (const auto* tensor = std::get_if<Tensor>(&value.content)) {
    visit(*tensor);
  } else if (const auto* list = std::get_if<List>(&value.content)) {
    for (const Value& item : list->items) for_each_tensor(*item, visit);
  } else if (const auto* record = std::get_if<Record>(&value.content)) {
    for (const auto& [key, field] : record->fields) for_each_tensor(*field, visit);
  }
}

Value map_tensors(const Value& value, const std::function<Tensor(const Tensor&)>& change) {
  if (const auto* tensor = std::get_if<Tensor>(&value->content)) {
    Tensor mapped = change(*tensor);
    return mapped == *tensor ? value : make_value(std::move(mapped));
  }
  if (const auto* list = std::get_if<List>(&value->content)) {
    List mapped{{}, list->is_spread};
    bool same = true;
    for (const Value& item : list->items) {
      mapped.items.push_back(map_tensors(item, change));
      same = same && mapped.items.back() == item;
    }
    return same ? value : make_value(std::move(mapped));
  }
  if (const auto* record = std::get_if<Record>(&value->content)) {
    Record mapped;
    bool same = true;
    for (const auto& [key, field] : record->fields) {
      mapped.fields.emplace_back(key, map_tensors(field, change));
      same = same && mapped.fields.back().second == field;
    }
    return same ? value : make_value(std::move(mapped));
  }
  return value;
}

bool hash_value(const heddle_value& value, Hasher& hasher) {
  hasher.add(kind_of(value));
  switch (kind_of(value)) {
    case HEDDLE_KIND_NONE:
      return true;
    case HEDDLE_KIND_BOOL:
      hasher.add(int(std::get<bool>(value.content)));
      return true;
    case HEDDLE_KIND_INT:
      hasher.add(std::get<std::int64_t>(value.content));
      return true;
    case HEDDLE_KIND_UINT:
      hasher.add(std::get<std::uint64_t>(value.content));
      return true;
    case HEDDLE_KIND_FLOAT:
      hasher.add(std::get<double>(value.content));
      return true;
    case HEDDLE_KIND_STR:
      hasher.add(std::string_view(std::get<std::string>(value.content)));
      return true;
    case HEDDLE_KIND_LIST:
      hasher.add(std::get<List>(value.content).items.size());
      for (const Value& item : std::get<List>(value.content).items)
        if (!hash_value(*item, hasher)) return false;
      return true;
    case HEDDLE_KIND_RECORD:
      hasher.add(std::get<Record>(value.content).fields.size());
      for (const auto& [key, field] : std::get<Record>(value.content).fields) {
        hasher.add(std::string_view(key));
        if (!hash_value(*field, hasher)) return false;
      }
      return true;
    default:
      return false;
  }
}

}  // namespace heddle::engine
