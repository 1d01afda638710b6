#include "ksampler_nodes.h"

#include "sample.h"
#include "schedule_kind.h"
#include "user_error.h"

namespace heddle::field {
namespace {

// The levels of a KSampler node: some samplers ask for one more and drop the last but one.
Sigmas levels_for(const Value& model, const std::string& sampler, const std::string& schedule,
                  int steps, double denoise) {
  const ModelSampling sampling = model_sampling(model);
  SamplerSchedule wanted{.steps = steps, .denoise = denoise};
  if ((sampler_named(sampler).flags & HEDDLE_SAMPLER_DISCARDS_PENULTIMATE) != 0)
    wanted.penultimate = SamplerSchedule::Penultimate::kDiscard;
  const WholeSchedule whole = schedule_named(schedule, sampling);
  return with_user_errors([&] { return ksampler_sigmas(whole, wanted); });
}

}  // namespace

void infer_latent(Infer& question, const Input<Value>& latent_in, const std::optional<Value>& model,
                  const Output<Value>& out) {
  std::optional<Shape> shape = question.shape(latent_in, "samples");
  if (!shape || shape->size() < 2) return;
  if (model && model->is(HEDDLE_KIND_MODEL)) {
    const std::int64_t channels = latent_format(model_settings(*model)).channels;
    if (channels > 0) (*shape)[1] = channels;
  }
  question.out(out, "samples", HEDDLE_F32, *shape);
}

void KSampler::execute(Context& ctx) {
  const std::string sampler = ctx[sampler_name];
  SampleJob job;
  job.guide = {ctx[model], ctx[positive], ctx[negative], ctx[cfg]};
  job.sampler.name = sampler;
  job.sigmas = levels_for(job.guide.model, sampler, ctx[scheduler], int(ctx[steps]), ctx[denoise]);
  job.noise.seed = ctx[seed];
  job.latent = ctx[latent_image];
  ctx[latent] = sample(ctx, job).latent;
}

void KSampler::infer(Infer& question) {
  infer_latent(question, latent_image, question[model], latent);
}

void KSamplerAdvanced::execute(Context& ctx) {
  const std::string sampler = ctx[sampler_name];
  SampleJob job;
  job.guide = {ctx[model], ctx[positive], ctx[negative], ctx[cfg]};
  job.sampler.name = sampler;
  const Sigmas whole = levels_for(job.guide.model, sampler, ctx[scheduler], int(ctx[steps]), 1.0);
  StepRange range{.start = int(ctx[start_at_step]), .end = int(ctx[end_at_step])};
  if (ctx[leftover] == "disable") range.leftover = StepRange::Leftover::kRemove;
  job.sigmas = with_user_errors([&] { return cut_sigmas(whole, range); });
  job.noise = {ctx[noise_seed], ctx[add_noise] == "enable"};
  job.latent = ctx[latent_image];
  ctx[latent] = sample(ctx, job).latent;
}

void KSamplerAdvanced::infer(Infer& question) {
  infer_latent(question, latent_image, question[model], latent);
}

}  // namespace heddle::field
