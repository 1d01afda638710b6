#include "mini_host.h"

#include <cstdio>
#include <cstring>
#include <stdexcept>
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
  std::vector<std::pair<std::string, heddle_value>> fields;
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
  return index < record->fields.size() ? record->fields[index].first.c_str() : nullptr;
}

// The functions that options need; a plugin that calls another one here fails loudly, at address 0.
const heddle_value_service kValues = [] {
  heddle_value_service table{};
  table.kind = [](const heddle_value* value) { return value->kind; };
  table.get_int = get_int;
  table.get_str = get_str;
  table.count = [](const heddle_value* value) {
    return static_cast<std::uint32_t>(value->fields.size());
  };
  table.key = key;
  table.field = field;
  return table;
}();

const void* service(const heddle_host*, const char* id) {
  return std::strcmp(id, HEDDLE_SERVICE_VALUE) == 0 ? &kValues : nullptr;
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
    value_->fields.emplace_back(name, value);
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
