// plugins/blocks/config_inside.h - the configs of its parts that a publisher's file has in its
// metadata. Any thread.
#pragma once

#include <heddle/model.hpp>

#include <optional>
#include <string>

namespace heddle::blocks {

// The metadata "config" of a file, a record; an empty value where it has none. Throws where that is
// no JSON.
inline Value config_inside(const Checkpoint& file) {
  const std::optional<std::string> text = file.meta("config");
  if (!text) return {};
  heddle_value* out = nullptr;
  const std::string name = file.path() + ", metadata 'config'";
  check(service<heddle_json_service>().parse(services.host, {text->data(), text->size()},
                                             name.c_str(), &out));
  return Value::adopt(out);
}

}  // namespace heddle::blocks
