#include "custom_nodes.h"

#include "sample.h"
#include "sigmas_value.h"

namespace heddle::field {
namespace {

Value noise_record(std::uint64_t seed, bool add) {
  return Record().set("seed", value_of(seed)).set("add", value_of(add)).value();
}

Value sampler_record(const SamplerChoice& choice) {
  return Record()
      .set("name", value_of(choice.name))
      .set("eta", value_of(choice.eta))
      .set("noise_factor", value_of(choice.noise_factor))
      .value();
}

SamplerChoice choice_of(const Value& sampler) {
  return {sampler.get<std::string>("name", ""), sampler.get<double>("eta", 1.0),
          sampler.get<double>("noise_factor", 1.0)};
}

}  // namespace

void RandomNoise::execute(Context& ctx) { ctx[noise] = noise_record(ctx[noise_seed], true); }

void DisableNoise::execute(Context& ctx) { ctx[noise] = noise_record(0, false); }

void KSamplerSelect::execute(Context& ctx) {
  const std::string name = ctx[sampler_name];
  sampler_named(name);  // a wrong name is this node's error, not the one's that draws
  ctx[sampler] = sampler_record({.name = name});
}

void SamplerEulerAncestral::execute(Context& ctx) {
  ctx[sampler] = sampler_record({"euler_ancestral", ctx[eta], ctx[s_noise]});
}

void BasicGuider::execute(Context& ctx) {
  ctx[guider] = Record()
                    .set("model", ctx[model])
                    .set("positive", ctx[conditioning])
                    .set("cfg", value_of(1.0))
                    .value();
}

void CFGGuider::execute(Context& ctx) {
  ctx[guider] = Record()
                    .set("model", ctx[model])
                    .set("positive", ctx[positive])
                    .set("negative", ctx[negative])
                    .set("cfg", value_of(ctx[cfg]))
                    .value();
}

void SamplerCustom::execute(Context& ctx) {
  SampleJob job;
  job.guide = {ctx[model], ctx[positive], ctx[negative], ctx[cfg]};
  job.sampler = choice_of(ctx[sampler]);
  job.sigmas = sigmas_of(ctx, ctx[sigmas]);
  job.noise = {ctx[noise_seed], ctx[add_noise]};
  job.latent = ctx[latent_image];
  const Sampled result = sample(ctx, job);
  ctx[output] = result.latent;
  ctx[denoised] = result.denoised;
}

void SamplerCustom::infer(Infer& question) {
  infer_latent(question, latent_image, question[model], output);
  infer_latent(question, latent_image, question[model], denoised);
}

void SamplerCustomAdvanced::execute(Context& ctx) {
  const Value from = ctx[noise], guide = ctx[guider];
  SampleJob job;
  job.guide = {guide.field("model"), guide.field("positive"), guide.field("negative"),
               guide.get<double>("cfg", 1.0)};
  if (!job.guide.model || !job.guide.positive)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the GUIDER has no model or no conditioning. Link a BasicGuider or a CFGGuider.");
  job.sampler = choice_of(ctx[sampler]);
  job.sigmas = sigmas_of(ctx, ctx[sigmas]);
  job.noise = {from.get<std::uint64_t>("seed", 0), from.get<bool>("add", true)};
  job.latent = ctx[latent_image];
  const Sampled result = sample(ctx, job);
  ctx[output] = result.latent;
  ctx[denoised] = result.denoised;
}

void SamplerCustomAdvanced::infer(Infer& question) {
  const std::optional<Value> guide = question[guider];
  const std::optional<Value> model = guide ? std::optional(guide->field("model")) : std::nullopt;
  infer_latent(question, latent_image, model, output);
  infer_latent(question, latent_image, model, denoised);
}

}  // namespace heddle::field
