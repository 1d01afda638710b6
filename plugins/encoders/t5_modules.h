// plugins/encoders/t5_modules.h - T5's modules by name. Any thread.
#pragma once

#include <heddle/diffusion/module_names.h>

namespace heddle::encoders {

extern const heddle_module_names_desc kT5ModuleNames;

}  // namespace heddle::encoders
