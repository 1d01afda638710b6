// The modules of a MODEL by the names that LoRA files use. Immutable; any thread.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::loaders {

class LoraTargets {
 public:
  // Names of the model's family where a plugin tells them (heddle/diffusion/module_names.h), else
  // those of its tensors.
  explicit LoraTargets(const Value& model);

  // The rows of the model's checkpoint that are a module's "weight" or "bias"; nullptr where it has
  // none. Dots and underscores are the same in `module`: kohya's scripts write the latter.
  const std::vector<Part>* find(const std::string& module, const char* kind) const;

 private:
  void add(const std::string& module, const char* kind, const std::vector<Part>& parts);
  std::unordered_map<std::string, std::vector<Part>> parts_;
};

}  // namespace heddle::loaders
