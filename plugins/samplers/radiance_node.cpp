#include "radiance_node.h"

#include <string>

#include <heddle/model.hpp>

namespace heddle::samplers {

void ChromaRadianceOptions::execute(Context& ctx) {
  const Value from = ctx[model], settings = model_settings(from),
              config = settings.field("sequential_model");
  const double first = ctx[start], last = ctx[end];
  if (ctx[tile] < -1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "nerf_tile_size is " + std::to_string(ctx[tile]) + ", at least -1 is wanted");
  if (!ctx[sequential] || !config || last > first) {
    ctx[out] = from;
    return;
  }
  if (first < 1 || last > 0)
    throw Error(HEDDLE_UNSUPPORTED,
                "force_sequential_txt_ids holds for all noise levels or none, start_sigma is " +
                    std::to_string(first) + " and end_sigma " + std::to_string(last) +
                    ". Set them to 1 and 0.");
  ctx[out] = with_settings(rebuilt_model(ctx, from, config), settings);
}

}  // namespace heddle::samplers
