// plugins/denoisers/renamed_modules.h - the tensors of a model whose file has one of two schemes of
// names, by both of them. Functions of names only; any thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <string>
#include <vector>

namespace heddle::denoisers {

// A name without the prefix -> that of the same tensor under the other scheme.
using Rename = std::string (*)(const std::string& name);

// The module that a tensor is of; kind: "weight" or "bias". A parameter that is neither
// ("blocks.0.modulation") is the weight of a module of its own name, as in ComfyUI.
struct NamedModule {
  std::string module;
  const char* kind;
};
inline NamedModule named_module(const std::string& tensor) {
  for (const char* kind : {"weight", "bias"})
    if (const std::string tail = std::string(".") + kind; tensor.ends_with(tail))
      return {tensor.substr(0, tensor.size() - tail.size()), kind};
  return {tensor, "weight"};
}

// Every module by its name in the file and by the other one; `kind` is "weight" or "bias".
inline void each_renamed_module(
    const Checkpoint& file, const std::string& prefix, Rename other,
    const std::function<void(const std::string& module, const char* kind,
                             const std::vector<Part>& parts)>& visit) {
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    const std::string tensor = file.name(i);
    if (!tensor.starts_with(prefix)) continue;
    const std::string here = tensor.substr(prefix.size()), there = other(here);
    const NamedModule by_file = named_module(here), by_other = named_module(there);
    visit(by_file.module, by_file.kind, {{tensor}});
    if (here != there) visit(by_other.module, by_other.kind, {{tensor}});
  }
}

// Every tensor by its original name.
inline void each_renamed_tensor(
    const Checkpoint& file, const std::string& prefix, Rename to_original,
    const std::function<void(const std::string& tensor, const std::vector<Part>& parts)>& visit) {
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    const std::string tensor = file.name(i);
    if (tensor.starts_with(prefix)) visit(to_original(tensor.substr(prefix.size())), {{tensor}});
  }
}

}  // namespace heddle::denoisers
