#include "model_sampling_nodes.h"

#include <iterator>
#include <string>

#include <heddle/checked.hpp>
#include <heddle/model.hpp>

#include "latent.h"
#include "model_sampling.h"
#include "plugins/blocks/playground_latents.h"

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

Value over_flux_levels(const Value& model, double mu) {
  return respaced(model, Record(model_settings(model))
                             .set("sampling", value_of("flow"))
                             .set("noise_table", value_of("flux"))
                             .set("noise_mu", value_of(mu)));
}

Value with_kind(const Value& model, const std::string& kind, const std::string& table,
                double lowest = 0.0, double highest = 0.0) {
  if (kind == "img_to_img_flow" || kind == "cosmos_rflow")
    throw Error(HEDDLE_UNSUPPORTED,
                "sampling is '" + kind + "', which samplers do not know. Choose another one.");
  Record settings(model_settings(model));
  settings.set("sampling", value_of(kind)).set("noise_table", value_of(table));
  if (table.starts_with("continuous"))
    settings.set("noise_lowest", value_of(lowest)).set("noise_highest", value_of(highest));
  return respaced(model, std::move(settings));
}

// An SDXL whose latents are those of Playground v2.5.
Value with_playground_latents(const Value& model) {
  Record settings(model_settings(model));
  const auto channels = model_settings(model).get<std::int64_t>("latent_channels", 0);
  if (channels != std::int64_t(std::size(blocks::kPlaygroundMeans)))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "sampling is 'edm_playground_v2.5', whose latents have 4 channels, and those of "
                "model have " +
                    std::to_string(channels) +
                    ". Link Playground v2.5 or another SDXL, or choose 'edm'.");
  return with_settings(model,
                       settings.set("latent_means", blocks::listed(blocks::kPlaygroundMeans))
                           .set("latent_deviations", blocks::listed(blocks::kPlaygroundDeviations))
                           .set("preview_factors", blocks::colour_rows(blocks::kPlaygroundColours))
                           .value());
}

}  // namespace

void ModelSamplingDiscrete::execute(Context& ctx) {
  const std::string kind = ctx[sampling];
  std::string table = kind == "lcm" ? "distilled" : "discrete";
  if (ctx[zsnr]) table += "_zero_snr";
  ctx[out] = with_kind(ctx[model], kind, table);
}

void ModelSamplingContinuousEDM::execute(Context& ctx) {
  const std::string kind = ctx[sampling];
  const bool is_playground = kind == "edm_playground_v2.5";
  const Value told = with_kind(ctx[model], is_playground ? "edm" : kind, "continuous_edm",
                               ctx[sigma_min], ctx[sigma_max]);
  ctx[out] = is_playground ? with_playground_latents(told) : told;
}

void ModelSamplingContinuousV::execute(Context& ctx) {
  ctx[out] = with_kind(ctx[model], ctx[sampling], "continuous_v", ctx[sigma_min], ctx[sigma_max]);
}

void ModelSamplingFlux::execute(Context& ctx) {
  const Value from = ctx[model];
  const double mu =
      flux_mu(checked_cast<int>(ctx[width], "width"), checked_cast<int>(ctx[height], "height"),
              ctx[base_shift], ctx[max_shift]);
  ctx[out] = over_flux_levels(from, mu);
}

void ModelSamplingLTXV::execute(Context& ctx) {
  const double tokens = ctx.has(latent) ? tokens_of(pictures_of(ctx[latent]).shape()) : kLtxvTokens;
  ctx[out] = over_flux_levels(ctx[model], ltxv_mu(tokens, ctx[base_shift], ctx[max_shift]));
}

// With a latent, whose size is told before the run; without one the node runs before.
void ModelSamplingLTXV::infer(Infer& question) {
  const Value from = question.part(model, "");
  const auto shape = question.shape(latent, "samples");
  const auto base = question[base_shift], most = question[max_shift];
  if (from && shape && base && most)
    question.known(out, "", over_flux_levels(from, ltxv_mu(tokens_of(*shape), *base, *most)));
}

void ModelSamplingStableCascade::execute(Context& ctx) {
  const Value from = ctx[model];
  ctx[out] = respaced(from, Record(model_settings(from))
                                .set("sampling", value_of("eps"))
                                .set("noise_table", value_of("cascade"))
                                .set("noise_shift", value_of(ctx[shift])));
}

void ModelNoiseScale::execute(Context& ctx) {
  const Value from = ctx[model];
  ctx[out] = with_settings(
      from, Record(model_settings(from)).set("noise_scale", value_of(ctx[noise_scale])).value());
}

void ModelSamplingSD3::execute(Context& ctx) { ctx[out] = shifted(ctx[model], ctx[shift]); }

void MiniMaxH3SigmaShift::execute(Context& ctx) {
  const Value from = ctx[model];
  if (!model_settings(from).has("sound_shift"))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "model is " + model_settings(from).get<std::string>("family", "of no family") +
                    ", whose sound has no levels of its own. Link a model of MiniMax H3, or "
                    "leave the node out.");
  const Value changed = shifted(from, ctx[shift_video]);
  ctx[out] = with_settings(
      changed,
      Record(model_settings(changed)).set("sound_shift", value_of(ctx[shift_audio])).value());
}

void ModelSamplingAuraFlow::execute(Context& ctx) {
  const Value changed = shifted(ctx[model], ctx[shift]);
  ctx[out] = with_settings(
      changed, Record(model_settings(changed)).set("sampling", value_of(ctx[sampling])).value());
}

}  // namespace heddle::samplers
