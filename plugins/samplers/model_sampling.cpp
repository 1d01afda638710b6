#include "model_sampling.h"

#include <heddle/diffusion/values.h>

#include "user_error.h"

namespace heddle::samplers {
namespace {

Prediction prediction_named(const std::string& name) {
  if (name == "flow") return Prediction::kFlow;
  if (const std::optional<Prediction> found = find_prediction(name)) return *found;
  throw Error(HEDDLE_UNSUPPORTED,
              "the model's setting 'sampling' is '" + name +
                  "', which no sampler knows. Known: flow, eps, v_prediction, edm, x0, lcm, "
                  "img_to_img, img_to_img_velocity.");
}

bool is_of_betas(const std::string& table) {
  return table == "discrete" || table == "discrete_zero_snr" || table == "distilled" ||
         table == "distilled_zero_snr";
}

Betas betas_of(const LevelRecipe& recipe) {
  Betas betas;
  if (recipe.multiplier < 1) {
    betas.first = recipe.shift;
    betas.last = recipe.multiplier;
  }
  if (recipe.table.ends_with("_zero_snr")) betas.terminal = Betas::Terminal::kZeroSnr;
  return betas;
}

}  // namespace

NoiseLevels make_levels(const LevelRecipe& recipe) {
  return with_user_errors([&] {
    if (recipe.table == "discrete_flow")
      return NoiseLevels::discrete_flow(recipe.shift, recipe.multiplier);
    if (recipe.table == "flux") return NoiseLevels::flux(recipe.shift);
    if (is_of_betas(recipe.table)) {
      const Betas betas = betas_of(recipe);
      return recipe.table.starts_with("distilled") ? NoiseLevels::distilled(betas)
                                                   : NoiseLevels::discrete(betas);
    }
    if (recipe.table == "continuous_edm")
      return NoiseLevels::continuous_edm(recipe.shift, recipe.multiplier);
    if (recipe.table == "continuous_v")
      return NoiseLevels::continuous_v(recipe.shift, recipe.multiplier);
    if (recipe.table == "cascade") return NoiseLevels::cascade(recipe.shift);
    throw Error(HEDDLE_UNSUPPORTED,
                "the model's noise table is '" + recipe.table +
                    "'. Known: discrete_flow, flux, discrete, distilled, continuous_edm, "
                    "continuous_v, cascade.");
  });
}

ModelSampling model_sampling(const Value& model) {
  const Value settings = model_settings(model);
  if (!settings.has("noise_table"))
    throw Error(HEDDLE_UNSUPPORTED,
                "this MODEL does not say how its noise levels are spaced (no setting "
                "'noise_table'). Link a diffusion model, not an encoder or an autoencoder.");
  LevelRecipe recipe;
  recipe.table = settings.get<std::string>("noise_table", "");
  recipe.shift = recipe.table == "flux" ? settings.get<double>("noise_mu", 1.15)
                                        : settings.get<double>("noise_shift", 1.0);
  recipe.multiplier = settings.get<double>("noise_multiplier", 1.0);
  if (recipe.table.starts_with("continuous")) {
    recipe.shift = settings.get<double>("noise_lowest", 0.002);
    recipe.multiplier = settings.get<double>("noise_highest", 120.0);
  }
  if (is_of_betas(recipe.table) && settings.has("noise_last")) {
    recipe.shift = settings.get<double>("noise_first", Betas{}.first);
    recipe.multiplier = settings.get<double>("noise_last", Betas{}.last);
  }
  const Prediction prediction = prediction_named(settings.get<std::string>("sampling", "flow"));
  NoiseLevels levels = make_levels(recipe);
  return {std::move(recipe), std::move(levels), prediction,
          settings.get<double>("noise_scale", 1.0)};
}

LatentFormat latent_format(const Value& settings) {
  LatentFormat format;
  format.channels = settings.get<std::int64_t>("latent_channels", 0);
  format.downscale = settings.get<std::int64_t>("latent_downscale", 0);
  format.has_frames = settings.get<bool>("latent_frames", false);
  format.has_sound = settings.get<bool>("latent_sound", false);
  format.draws_anew = settings.has("sound_shift");
  if (format.draws_anew)
    format.sound_scale =
        settings.get<double>("noise_shift", 1.0) / settings.get<double>("sound_shift", 1.0);
  const Value means = settings.field("latent_means"),
              deviations = settings.field("latent_deviations");
  if (!means || !deviations) {
    format.units = {{settings.get<double>("latent_scale", HEDDLE_FLUX_LATENT_SCALE),
                     settings.get<double>("latent_shift", HEDDLE_FLUX_LATENT_SHIFT)}};
    format.is_told = settings.has("latent_scale");
    return format;
  }
  if (means.count() != deviations.count() || std::int64_t(means.count()) != format.channels)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model's settings list " + std::to_string(means.count()) +
                    " latent_means and " + std::to_string(deviations.count()) +
                    " latent_deviations for " + std::to_string(format.channels) +
                    " latent_channels. Give one of each for every channel.");
  for (std::uint32_t i = 0; i < means.count(); ++i)
    format.units.push_back({1 / deviations.item(i).as<double>(), means.item(i).as<double>()});
  return format;
}

}  // namespace heddle::samplers
