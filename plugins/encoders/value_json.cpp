#include "value_json.h"

#include <cmath>

namespace heddle::encoders {
namespace {

const heddle_value* node_of(const void* node) { return static_cast<const heddle_value*>(node); }

text::JsonKind kind(const void* node) {
  switch (services.value->kind(node_of(node))) {
    case HEDDLE_KIND_BOOL:
      return text::JsonKind::kBool;
    case HEDDLE_KIND_INT:
    case HEDDLE_KIND_UINT:
    case HEDDLE_KIND_FLOAT:
      return text::JsonKind::kNumber;
    case HEDDLE_KIND_STR:
      return text::JsonKind::kString;
    case HEDDLE_KIND_LIST:
      return text::JsonKind::kArray;
    case HEDDLE_KIND_RECORD:
      return text::JsonKind::kObject;
    default:
      return text::JsonKind::kNull;
  }
}

// An object's members are values of a record, an array's are items of a list.
std::size_t size(const void* node) { return services.value->count(node_of(node)); }

const void* item(const void* node, std::size_t index) {
  return services.value->item(node_of(node), std::uint32_t(index));
}

std::string_view key(const void* node, std::size_t index) {
  return services.value->key(node_of(node), std::uint32_t(index));
}

const void* find(const void* node, std::string_view name) {
  return services.value->field(node_of(node), std::string(name).c_str());
}

std::string_view as_string(const void* node) {
  heddle_str text{};
  check(services.value->get_str(node_of(node), &text));
  return {text.data == nullptr ? "" : text.data, text.size};
}

double as_double(const void* node) {
  double number = 0;
  check(services.value->get_float(node_of(node), &number));
  return number;
}

std::optional<std::int64_t> as_int(const void* node) {
  const heddle_kind is = services.value->kind(node_of(node));
  if (is == HEDDLE_KIND_INT) {
    std::int64_t number = 0;
    check(services.value->get_int(node_of(node), &number));
    return number;
  }
  const double number = as_double(node);
  const bool whole = std::trunc(number) == number && std::abs(number) < 9.0e15;
  return is == HEDDLE_KIND_FLOAT && whole ? std::optional(std::int64_t(number)) : std::nullopt;
}

bool as_bool(const void* node) {
  std::int32_t flag = 0;
  check(services.value->get_bool(node_of(node), &flag));
  return flag != 0;
}

constexpr text::JsonTable kTable{&kind,      &size,      &item,   &key,    &find,
                                 &as_string, &as_double, &as_int, &as_bool};

}  // namespace

Value parse_json(std::string_view text, const std::string& name) {
  heddle_value* out = nullptr;
  check(service<heddle_json_service>().parse(services.host, {text.data(), text.size()},
                                             name.c_str(), &out));
  return Value::adopt(out);
}

text::JsonView view_json(const Value& document) { return {&kTable, document.raw()}; }

}  // namespace heddle::encoders
