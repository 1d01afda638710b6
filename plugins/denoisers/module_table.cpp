#include "module_table.h"

namespace heddle::denoisers {

const Module& look_up(std::span<const Module> table, std::string_view original) {
  for (const Module& module : table)
    if (module.original == original) return module;
  throw Error(HEDDLE_INTERNAL, "the model has no module '" + std::string(original) + "'");
}

std::vector<Part> diffusers_parts(const Checkpoint& file, const std::string& at,
                                  const Module& module, const char* kind) {
  const std::string tail = std::string(".") + kind;
  if (module.fused != nullptr && file.has(at + module.fused + tail))
    return {{at + module.fused + tail}};
  std::vector<Part> parts;
  for (const char* name : module.parts)
    if (name != nullptr) parts.push_back({at + name + tail});
  return parts;
}

std::vector<Part> halves_swapped(const std::string& tensor, std::int64_t half) {
  return {{tensor, half, 2 * half}, {tensor, 0, half}};
}

}  // namespace heddle::denoisers
