#include "kv_cache_node.h"

#include "reference_cache.h"

namespace heddle::samplers {

void FluxKVCache::execute(Context& ctx) { ctx[out] = with_reference_cache(ctx, ctx[model]); }

}  // namespace heddle::samplers
