// The kinds of weight hooks (heddle/diffusion/weight_hooks.h) that come from files of models: LoRA,
// and another model of the same kind.
#pragma once

#include <string_view>

#include <heddle/diffusion/weight_hooks.h>
#include <heddle/node.hpp>

namespace heddle::loaders {

inline constexpr const char* kLoraHook = "lora";
// The difference of the file's weights from the model's own, whatever patches that has.
inline constexpr const char* kModelHook = "model_as_lora";

struct WeightHookKinds {
  static constexpr std::string_view kind = HEDDLE_WEIGHT_HOOKS;
  static const heddle_list* list();
};

}  // namespace heddle::loaders
