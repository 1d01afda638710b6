#include "model_sampling_nodes.h"

#include <heddle/checked.hpp>
#include <heddle/model.hpp>

#include "model_sampling.h"

namespace heddle::samplers {
namespace {

// The model with other settings; throws when they give no table.
Value respaced(const Value& model, Record settings) {
  const Value changed = with_settings(model, settings.value());
  model_sampling(changed);
  return changed;
}

Value shifted(const Value& model, double shift) {
  return respaced(model, Record(model_settings(model))
                             .set("sampling", value_of("flow"))
                             .set("noise_table", value_of("discrete_flow"))
                             .set("noise_shift", value_of(shift)));
}

}  // namespace

void ModelSamplingFlux::execute(Context& ctx) {
  const Value from = ctx[model];
  const double mu =
      flux_mu(checked_cast<int>(ctx[width], "width"), checked_cast<int>(ctx[height], "height"),
              ctx[base_shift], ctx[max_shift]);
  ctx[out] = respaced(from, Record(model_settings(from))
                                .set("sampling", value_of("flow"))
                                .set("noise_table", value_of("flux"))
                                .set("noise_mu", value_of(mu)));
}

void ModelSamplingSD3::execute(Context& ctx) { ctx[out] = shifted(ctx[model], ctx[shift]); }

void ModelSamplingAuraFlow::execute(Context& ctx) {
  if (ctx[sampling] != "flow")
    throw Error(HEDDLE_UNSUPPORTED,
                "sampling: " + ctx[sampling] +
                    " is for models that turn pictures into pictures, and no model that heddle "
                    "knows does. Take flow.");
  ctx[out] = shifted(ctx[model], ctx[shift]);
}

}  // namespace heddle::samplers
