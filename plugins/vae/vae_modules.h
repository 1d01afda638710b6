// The weights of KL autoencoders by their original names, as heddle.field.module_names/0. Any
// thread.
#pragma once

#include <heddle/diffusion/module_names.h>
#include <heddle/plugin.hpp>

#include <string_view>

namespace heddle::vae {

struct VaeModules {
  static constexpr std::string_view kind = HEDDLE_MODULE_NAMES;
  static const heddle_list* list();
};

}  // namespace heddle::vae
