// heddle.cache/0: what is not to be kept of a call.
#include "engine/plugin/host.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

const heddle_cache_service* cache_service() {
  static const heddle_cache_service table{[](heddle_ctx* ctx) { ctx->do_not_cache(); }};
  return &table;
}

}  // namespace heddle::engine
