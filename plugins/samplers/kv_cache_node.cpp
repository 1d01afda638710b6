#include "kv_cache_node.h"

#include <heddle/model.hpp>

#include "reference_cache.h"

namespace heddle::samplers {

void FluxKVCache::execute(Context& ctx) { ctx[out] = with_reference_cache(ctx, ctx[model]); }

void WanAnimate2Cache::execute(Context& ctx) {
  const Value given = ctx[model], settings = model_settings(given);
  if (model_takes(given, "pose_context")) {
    ctx[out] = given;
    return;
  }
  const Value config = settings.field("posing_model");
  if (!config)
    throw Error(HEDDLE_UNSUPPORTED, "the model '" + model_family(given) +
                                        "' follows no poses as Wan Animate 2 does. Leave out "
                                        "WanAnimate2Cache, or load Wan Animate 2.");
  ctx[out] = with_settings(rebuilt_model(ctx, given, config),
                           Record(settings).set("reads_poses", value_of(true)).value());
}

}  // namespace heddle::samplers
