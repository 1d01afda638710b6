// heddle.registry/0: what all plugins provide.
#include "engine/plugin/host.h"
#include "engine/plugin/loader.h"

namespace heddle::engine {

const heddle_registry_service* registry_service() {
  static const heddle_registry_service table{
      [](const heddle_host*, const char* kind) {
        return std::uint32_t(provided_by_all(kind).size());
      },
      [](const heddle_host*, const char* kind, std::uint32_t i) -> const void* {
        const auto all = provided_by_all(kind);
        return i < all.size() ? all[i].desc : nullptr;
      },
      [](const heddle_host*, const char* kind, std::uint32_t i) -> const char* {
        const auto all = provided_by_all(kind);
        return i < all.size() ? all[i].plugin->id().c_str() : nullptr;
      }};
  return &table;
}

}  // namespace heddle::engine
