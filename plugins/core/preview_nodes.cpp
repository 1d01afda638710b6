#include "preview_nodes.h"

#include <heddle/device.hpp>
#include <string>
#include <vector>

#include "python_text.h"

namespace heddle::loaders {
namespace {

Value text_value(const std::string& text) {
  return Value::adopt(services.value->make_str({text.data(), text.size()}));
}

// The same value with a text in the place of everything that JSON cannot hold.
Value for_json(const Value& value) {
  switch (value.kind()) {
    case HEDDLE_KIND_TENSOR:
      return text_value("tensor " + device::describe(value.as<Tensor>().info()));
    case HEDDLE_KIND_MODEL:
      return text_value("model");
    case HEDDLE_KIND_OBJECT:
      return text_value("object");
    case HEDDLE_KIND_LIST:
    case HEDDLE_KIND_RECORD: {
      const bool is_record = value.is(HEDDLE_KIND_RECORD);
      std::vector<Value> shared;
      std::vector<std::string> names;
      for (std::uint32_t i = 0; i < value.count(); ++i) {
        if (is_record) names.push_back(value.key(i));
        shared.push_back(for_json(is_record ? value.field(names.back().c_str()) : value.item(i)));
      }
      std::vector<const heddle_value*> items;
      std::vector<const char*> keys;
      for (const Value& item : shared) items.push_back(item.raw());
      for (const std::string& name : names) keys.push_back(name.c_str());
      const auto count = static_cast<std::uint32_t>(items.size());
      return Value::adopt(is_record ? services.value->make_record(count, keys.data(), items.data())
                                    : services.value->make_list(count, items.data()));
    }
    default:
      return value;
  }
}

std::string json_of(const Value& value) {
  heddle_value* text = nullptr;
  check(service<heddle_json_service>().write(services.host, value.raw(), &text));
  return Value::adopt(text).as<std::string>();
}

std::string text_of(const Value& value) {
  switch (value.kind()) {
    case HEDDLE_KIND_NONE:
      return "None";
    case HEDDLE_KIND_BOOL:
      return value.as<bool>() ? "True" : "False";
    case HEDDLE_KIND_FLOAT:
      return python_float(value.as<double>());
    case HEDDLE_KIND_LIST:
    case HEDDLE_KIND_RECORD:
      return json_of(for_json(value));
    case HEDDLE_KIND_INT:
    case HEDDLE_KIND_UINT:
      return json_of(value);
    default:
      return for_json(value).as<std::string>();
  }
}

}  // namespace

void PreviewAny::execute(Context& ctx) {
  const std::string read = text_of(ctx[source]);
  const std::string shown = json_of(text_value(read));
  service<heddle_report_service>().wrote(ctx.raw(), nullptr,
                                         ("{\"text\": [" + shown + "]}").c_str());
  ctx[text] = read;
}

}  // namespace heddle::loaders
