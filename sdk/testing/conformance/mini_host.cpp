#include "mini_host.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

struct heddle_status {
  heddle_code code;
  std::string message;
};

// One value: a number, a text, or a record of them.
struct heddle_value {
  heddle_kind kind = HEDDLE_KIND_NONE;
  std::int64_t number = 0;
  std::string text;
  struct Field;
  std::vector<Field> fields;
};
struct heddle_value::Field {
  std::string name;
  heddle_value value;
};

namespace heddle::conformance {

namespace {

heddle_status* fail(const heddle_host*, heddle_code code, const char* message) {
  return new heddle_status{code, message};
}

heddle_status* wrong_kind() {
  return fail(nullptr, HEDDLE_INVALID_ARGUMENT, "the value is of another kind");
}

heddle_status* get_int(const heddle_value* value, std::int64_t* out) {
  if (value->kind != HEDDLE_KIND_INT) return wrong_kind();
  *out = value->number;
  return nullptr;
}

heddle_status* get_float(const heddle_value* value, double* out) {
  if (value->kind != HEDDLE_KIND_INT) return wrong_kind();
  *out = static_cast<double>(value->number);
  return nullptr;
}

heddle_status* get_bool(const heddle_value*, std::int32_t*) { return wrong_kind(); }

heddle_status* get_str(const heddle_value* value, heddle_str* out) {
  if (value->kind != HEDDLE_KIND_STR) return wrong_kind();
  *out = {value->text.data(), value->text.size()};
  return nullptr;
}

const heddle_value* field(const heddle_value* record, const char* key) {
  for (const auto& [name, value] : record->fields)
    if (name == key) return &value;
  return nullptr;
}

const char* key(const heddle_value* record, std::uint32_t index) {
  return index < record->fields.size() ? record->fields[index].name.c_str() : nullptr;
}

heddle_value* make_record(std::uint32_t count, const char* const* keys,
                          const heddle_value* const* values) {
  auto* record = new heddle_value{.kind = HEDDLE_KIND_RECORD};
  for (std::uint32_t i = 0; i < count; ++i) record->fields.push_back({keys[i], *values[i]});
  return record;
}

// The functions that options need, reading and making them; a plugin that calls another one here
// fails loudly, at address 0.
const heddle_value_service kValues = [] {
  heddle_value_service table{};
  table.kind = [](const heddle_value* value) { return value->kind; };
  table.get_bool = get_bool;
  table.get_int = get_int;
  table.get_float = get_float;
  table.get_str = get_str;
  table.count = [](const heddle_value* value) {
    return static_cast<std::uint32_t>(value->fields.size());
  };
  table.key = key;
  table.field = field;
  table.item = [](const heddle_value* value, std::uint32_t index) -> const heddle_value* {
    return index < value->fields.size() ? &value->fields[index].value : nullptr;
  };
  table.release = [](const heddle_value* value) { delete value; };
  table.make_int = [](std::int64_t number) {
    return new heddle_value{.kind = HEDDLE_KIND_INT, .number = number};
  };
  table.make_str = [](heddle_str text) {
    return new heddle_value{.kind = HEDDLE_KIND_STR, .text = {text.data, text.size}};
  };
  table.make_record = make_record;
  return table;
}();

std::vector<const heddle_plugin*> registered;

std::vector<const void*> provided(const char* kind) {
  std::vector<const void*> all;
  for (const heddle_plugin* plugin : registered) {
    const heddle_list* list = plugin->provide(kind);
    if (list != nullptr) all.insert(all.end(), list->items, list->items + list->count);
  }
  return all;
}

const heddle_registry_service kRegistry = {
    .count = [](const heddle_host*,
                const char* kind) { return static_cast<std::uint32_t>(provided(kind).size()); },
    .item = [](const heddle_host*, const char* kind, std::uint32_t index) -> const void* {
      const auto all = provided(kind);
      return index < all.size() ? all[index] : nullptr;
    },
    .plugin = [](const heddle_host*, const char*, std::uint32_t) -> const char* { return nullptr; },
};

const void* service(const heddle_host*, const char* id) {
  const std::string_view asked = id;
  if (asked == HEDDLE_SERVICE_VALUE) return &kValues;
  return asked == HEDDLE_SERVICE_REGISTRY ? &kRegistry : nullptr;
}

void log(const heddle_host*, heddle_level level, const char* message) {
  std::fprintf(stderr, "plugin log %d: %s\n", level, message);
}

}  // namespace

const heddle_host* mini_host() {
  static const heddle_host host = {
      .size = sizeof(heddle_host),
      .abi_major = HEDDLE_ABI_MAJOR,
      .abi_minor = HEDDLE_ABI_MINOR,
      .name = "conformance",
      .version = "0",
      .service = service,
      .fail = fail,
      .status_code = [](const heddle_status* status) { return status->code; },
      .status_message = [](const heddle_status* status) { return status->message.c_str(); },
      .status_free = [](heddle_status* status) { delete status; },
      .log = log,
  };
  return &host;
}

void add_to_registry(const heddle_plugin* plugin) { registered.push_back(plugin); }
void remove_from_registry(const heddle_plugin* plugin) {
  registered.erase(std::find(registered.begin(), registered.end(), plugin));
}

OptionRecord::OptionRecord(const OptionMap& options) : value_(new heddle_value) {
  value_->kind = HEDDLE_KIND_RECORD;
  for (const auto& [name, option] : options) {
    heddle_value value;
    if (const auto* number = std::get_if<std::int64_t>(&option)) {
      value.kind = HEDDLE_KIND_INT;
      value.number = *number;
    } else {
      value.kind = HEDDLE_KIND_STR;
      value.text = std::get<std::string>(option);
    }
    value_->fields.push_back({name, value});
  }
}

OptionRecord::~OptionRecord() { delete value_; }

Reason take(heddle_status* status) {
  Reason reason{status->code, status->message};
  delete status;
  return reason;
}

void check(heddle_status* status) {
  if (status != nullptr) throw std::runtime_error(take(status).message);
}

}  // namespace heddle::conformance
