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

Value with_kind(const Value& model, const std::string& kind, const std::string& table,
                double lowest = 0.0, double highest = 0.0) {
  if (kind == "img_to_img_flow" || kind == "cosmos_rflow" || kind == "edm_playground_v2.5")
    throw Error(HEDDLE_UNSUPPORTED,
                "sampling is '" + kind + "', which samplers do not know. Choose another one.");
  Record settings(model_settings(model));
  settings.set("sampling", value_of(kind)).set("noise_table", value_of(table));
  if (table.starts_with("continuous"))
    settings.set("noise_lowest", value_of(lowest)).set("noise_highest", value_of(highest));
  return respaced(model, std::move(settings));
}

}  // namespace

void ModelSamplingDiscrete::execute(Context& ctx) {
  const std::string kind = ctx[sampling];
  std::string table = kind == "lcm" ? "distilled" : "discrete";
  if (ctx[zsnr]) table += "_zero_snr";
  ctx[out] = with_kind(ctx[model], kind, table);
}

void ModelSamplingContinuousEDM::execute(Context& ctx) {
  ctx[out] = with_kind(ctx[model], ctx[sampling], "continuous_edm", ctx[sigma_min], ctx[sigma_max]);
}

void ModelSamplingContinuousV::execute(Context& ctx) {
  ctx[out] = with_kind(ctx[model], ctx[sampling], "continuous_v", ctx[sigma_min], ctx[sigma_max]);
}

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
