// heddle/joined_model.hpp - a model with the weights of one more file.
#pragma once

#include "abi/joined_model.h"
#include "model.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

template <>
inline constexpr const char* service_name<heddle_joined_model_service> =
    HEDDLE_SERVICE_JOINED_MODEL;

// Of its family, for this configuration, over its own weights and those of `file`, whose names
// begin with `prefix` there.
inline Value joined_model(const Value& model, const Checkpoint& file, const std::string& prefix,
                          const Value& config) {
  heddle_value* out = nullptr;
  check(service<heddle_joined_model_service>().join(model.raw(), file.raw(), prefix.c_str(),
                                                    config.raw(), &out));
  return Value::adopt(out);
}

}  // namespace heddle
