#include "engine/transfer/route.h"

namespace heddle::engine {

Route find_route(const Device* from, const Device* to) {
  const bool from_host = from == nullptr || from->host_visible(),
             to_host = to == nullptr || to->host_visible();
  if (from_host && to_host) return Route::same;
  if (from_host) return Route::from_host;
  if (to_host) return Route::to_host;
  // A device of another plugin is a stranger: only the host knows both.
  const bool related = from->kind() == to->kind() && to->desc().can_copy != nullptr;
  return related && to->desc().can_copy(to->raw(), from->raw()) != 0 ? Route::direct
                                                                     : Route::staged;
}

}  // namespace heddle::engine
