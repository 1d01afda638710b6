// plugins/encoders/modules.h - the modules of all encoders here by name, as
// heddle.field.module_names/0: a plugin has one list of a kind. Any thread.
#pragma once

#include <heddle/diffusion/module_names.h>
#include <heddle/plugin.hpp>

#include <string_view>

namespace heddle::encoders {

struct Modules {
  static constexpr std::string_view kind = HEDDLE_MODULE_NAMES;
  static const heddle_list* list();
};

}  // namespace heddle::encoders
