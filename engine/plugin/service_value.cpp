// heddle.value/0 and heddle.json/0.
#include <utility>

#include "engine/base/json.h"
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

namespace {

std::string_view view_of(heddle_str s) {
  return s.size == 0 ? std::string_view() : std::string_view(s.data, s.size);
}

thread_local bool lacked_memory = false;

// Runs make(); nullptr when memory is out, as the ABI says.
template <class F>
heddle_value* made(F&& make) noexcept {
  try {
    return const_cast<heddle_value*>(make().release());
  } catch (...) {
    lacked_memory = true;
    return nullptr;
  }
}

const heddle_value* item(const heddle_value* v, std::uint32_t i) {
  if (const auto* list = std::get_if<List>(&v->content))
    return i < list->items.size() ? list->items[i].get() : nullptr;
  if (const auto* record = std::get_if<Record>(&v->content))
    return i < record->fields.size() ? record->fields[i].second.get() : nullptr;
  return nullptr;
}

heddle_status* get_object(const heddle_value* v, const char* interface_id, const void** table,
                          void** self) {
  return to_status([&] {
    const auto* object = std::get_if<std::shared_ptr<const Object>>(&v->content);
    if (object == nullptr || (*object)->interface_id != interface_id)
      throw Error(Code::invalid_argument,
                  "expected an object '" + std::string(interface_id) + "', got " + describe(*v));
    *table = (*object)->table;
    *self = (*object)->self;
  });
}

}  // namespace

bool take_lack_of_memory() noexcept { return std::exchange(lacked_memory, false); }

const heddle_value_service* value_service() {
  static const heddle_value_service table{
      [](const heddle_value* v) { Value::share(v).release(); },
      [](const heddle_value* v) { Value::drop(v); },
      [](const heddle_value* v) { return kind_of(*v); },
      [](const heddle_value* v, std::int32_t* out) {
        return to_status([&] { *out = get_bool(*v) ? 1 : 0; });
      },
      [](const heddle_value* v, std::int64_t* out) {
        return to_status([&] { *out = get_int(*v); });
      },
      [](const heddle_value* v, std::uint64_t* out) {
        return to_status([&] { *out = get_uint(*v); });
      },
      [](const heddle_value* v, double* out) { return to_status([&] { *out = get_float(*v); }); },
      [](const heddle_value* v, heddle_str* out) {
        return to_status([&] {
          const std::string& s = get_str(*v);
          *out = {s.data(), s.size()};
        });
      },
      [](const heddle_value* v, heddle_tensor** out) {
        return to_status([&] { *out = get_tensor(*v).get(); });
      },
      &get_object,
      [](const heddle_value* v) -> std::uint32_t {
        if (const auto* list = std::get_if<List>(&v->content))
          return std::uint32_t(list->items.size());
        if (const auto* record = std::get_if<Record>(&v->content))
          return std::uint32_t(record->fields.size());
        return 0;
      },
      &item,
      [](const heddle_value* v, std::uint32_t i) -> const char* {
        const auto* record = std::get_if<Record>(&v->content);
        return record != nullptr && i < record->fields.size() ? record->fields[i].first.c_str()
                                                              : nullptr;
      },
      [](const heddle_value* v, const char* key) -> const heddle_value* {
        const auto* record = std::get_if<Record>(&v->content);
        const Value* found = record == nullptr ? nullptr : record->find(key);
        return found == nullptr ? nullptr : found->get();
      },
      [] { return made([] { return make_value(None{}); }); },
      [](std::int32_t x) { return made([&] { return make_value(x != 0); }); },
      [](std::int64_t x) { return made([&] { return Value::adopt(new heddle_value(x)); }); },
      [](std::uint64_t x) { return made([&] { return make_value(x); }); },
      [](double x) { return made([&] { return make_value(x); }); },
      [](heddle_str s) { return made([&] { return make_value(std::string(view_of(s))); }); },
      [](heddle_tensor* t) { return made([&] { return make_value(Tensor::adopt(t)); }); },
      [](std::uint32_t count, const heddle_value* const* items) {
        return made([&] {
          List list;
          for (std::uint32_t i = 0; i < count; ++i) list.items.push_back(Value::share(items[i]));
          return make_value(std::move(list));
        });
      },
      [](std::uint32_t count, const char* const* keys, const heddle_value* const* values) {
        return made([&] {
          Record record;
          for (std::uint32_t i = 0; i < count; ++i)
            record.fields.emplace_back(keys[i], Value::share(values[i]));
          return make_value(std::move(record));
        });
      },
      [](const char* interface_id, const void* object_table, void* self, void (*drop)(void*)) {
        return made([&] {
          return make_value(std::shared_ptr<const Object>(
              std::make_shared<Object>(interface_id, object_table, self, drop)));
        });
      },
      [](heddle_str message) {
        return made([&] { return make_value(Blocker{std::string(view_of(message))}); });
      }};
  return &table;
}

const heddle_json_service* json_service() {
  static const heddle_json_service table{
      [](const heddle_host*, heddle_str text, const char* name, heddle_value** out) {
        return to_status([&] {
          *out = const_cast<heddle_value*>(from_json(parse_json(view_of(text), name)).release());
        });
      },
      [](const heddle_host*, const heddle_value* value, heddle_value** out) {
        return to_status([&] {
          *out = const_cast<heddle_value*>(make_value(write_json(to_json(*value))).release());
        });
      }};
  return &table;
}

}  // namespace heddle::engine
