// plugins/encoders/language_modules.h - a language model's modules by name. Any thread.
#pragma once

#include <heddle/diffusion/module_names.h>

namespace heddle::encoders {

extern const heddle_module_names_desc kLanguageModuleNames;

}  // namespace heddle::encoders
