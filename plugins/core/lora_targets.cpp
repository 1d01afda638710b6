#include "lora_targets.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <heddle/diffusion/module_names.h>

namespace heddle::loaders {
namespace {

std::string key_of(std::string module, const char* kind) {
  std::replace(module.begin(), module.end(), '.', '_');
  return module + "." + kind;
}

}  // namespace

LoraTargets::LoraTargets(const Value& model) {
  const Checkpoint file = model_checkpoint(model);
  const std::string family = model_family(model);
  const auto* names = find_provided<heddle_module_names_desc>(
      HEDDLE_MODULE_NAMES, [&](const auto& desc) { return family == desc.family; });
  if (names != nullptr) {
    const auto found = [](void* to, const char* module, const char* kind, std::uint32_t count,
                          const heddle_part* const* parts) {
      std::vector<Part> list;
      for (std::uint32_t i = 0; i < count; ++i)
        list.push_back({parts[i]->tensor, parts[i]->begin, parts[i]->end});
      static_cast<LoraTargets*>(to)->add(module, kind, list);
    };
    check(names->list(services.host, file.raw(), found, this));
    return;
  }
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    const std::string name = file.name(i);
    if (!name.ends_with(".weight") && !name.ends_with(".bias")) add(name, "weight", {{name}});
    for (const char* kind : {"weight", "bias"}) {
      const std::string tail = std::string(".") + kind;
      if (!name.ends_with(tail)) continue;
      const std::string module = name.substr(0, name.size() - tail.size());
      add(module, kind, {{name}});
      // Not every version of transformers writes this prefix.
      constexpr std::string_view optional = "text_model.";
      add(module.starts_with(optional) ? module.substr(optional.size())
                                       : std::string(optional) + module,
          kind, {{name}});
    }
  }
}

void LoraTargets::add(const std::string& module, const char* kind, const std::vector<Part>& parts) {
  parts_.try_emplace(key_of(module, kind), parts);
}

const std::vector<Part>* LoraTargets::find(const std::string& module, const char* kind) const {
  const auto found = parts_.find(key_of(module, kind));
  return found == parts_.end() ? nullptr : &found->second;
}

}  // namespace heddle::loaders
