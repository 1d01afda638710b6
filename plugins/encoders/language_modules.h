// plugins/encoders/language_modules.h - a language model's modules by name, as
// heddle.field.module_names/0. Any thread.
#pragma once

#include <heddle/diffusion/module_names.h>
#include <heddle/plugin.hpp>

#include <string_view>

namespace heddle::encoders {

struct LanguageModules {
  static constexpr std::string_view kind = HEDDLE_MODULE_NAMES;
  static const heddle_list* list();
};

}  // namespace heddle::encoders
