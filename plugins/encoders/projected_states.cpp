#include "projected_states.h"

#include <algorithm>

#include <heddle/ops.hpp>
#include <heddle/session.hpp>

namespace heddle::encoders {
namespace {

// As diffusers' per_layer_masked_mean_norm().
constexpr double kRange = 8, kLeastRange = 1e-6;

struct LayerScales {
  std::vector<float> factors, addends;
};

// One layer at a time: all of them are hundreds of megabytes where a text is long.
LayerScales scales_of(Context& ctx, const Tensor& states, std::int64_t layers) {
  const std::int64_t width = states.size(2) / layers;
  LayerScales scales;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::vector<float> values =
        ctx.read<float>(states.slice(2, layer * width, (layer + 1) * width));
    double sum = 0;
    for (const float value : values) sum += value;
    const auto [least, most] = std::ranges::minmax_element(values);
    const double factor = kRange / (double(*most) - double(*least) + kLeastRange);
    scales.factors.push_back(float(factor));
    scales.addends.push_back(float(-sum / double(values.size()) * factor));
  }
  return scales;
}

}  // namespace

Tensor projected_states(Context& ctx, const Value& projection, const Tensor& states) {
  const auto layers = model_settings(projection).get<std::int64_t>("states", 1);
  Record inputs;
  inputs.set("states", value_of(states));
  if (model_takes(projection, "factors")) {
    const LayerScales scales = scales_of(ctx, states, layers);
    inputs.set("factors", value_of(ctx.upload({layers}, HEDDLE_F32, scales.factors.data())))
        .set("addends", value_of(ctx.upload({layers}, HEDDLE_F32, scales.addends.data())));
  }
  const Tensor made = call_model(ctx, projection, inputs.value()).field("projected").as<Tensor>();
  return made.dtype() == HEDDLE_F32 ? made : ops::cast(ctx, made, HEDDLE_F32);
}

Infer::Set projection_shapes(const Value& projection, std::int64_t tokens) {
  const Value settings = model_settings(projection);
  const auto layers = settings.get<std::int64_t>("states", 1);
  Infer::Set set;
  set.constants.push_back(
      {"states", HEDDLE_F32, {1, tokens, settings.get<std::int64_t>("reads", 0)}});
  if (model_takes(projection, "factors"))
    for (const char* name : {"factors", "addends"})
      set.constants.push_back({name, HEDDLE_F32, {layers}});
  return set;
}

}  // namespace heddle::encoders
