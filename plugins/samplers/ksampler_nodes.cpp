#include "ksampler_nodes.h"

#include <heddle/checked.hpp>

#include "sample.h"
#include "sample_shapes.h"
#include "schedule_kind.h"
#include "user_error.h"

namespace heddle::samplers {
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

// What both nodes tell; `levels` is called when the model, the sampler, the schedule and the number
// of steps are known.
template <class Node, class F>
void infer_sampler(Infer& question, F&& levels) {
  const Value model = question.part(Node::model, "");
  const std::optional<Shape> shape = sampled_shape(question, Node::latent_image, model);
  if (!shape) return;
  JobShapes job{.model = model,
                .positive = entry_shapes(question, Node::positive),
                .negative = entry_shapes(question, Node::negative),
                .cfg = question[Node::cfg],
                .sampler = {},
                .sigmas = {},
                .latent = *shape};
  tell_latent(question, Node::latent_image, job);
  infer_latent(question, Node::latent_image, Node::latent, *shape, job.parts);
  const auto sampler = question[Node::sampler_name], schedule = question[Node::scheduler];
  const auto steps = question[Node::steps];
  if (!sampler || !schedule || !steps) return;
  job.sampler = SamplerChoice{.name = *sampler};
  try {
    job.sigmas = levels(model, *sampler, *schedule, checked_cast<int>(*steps, "steps"));
  } catch (const Error&) {
    return;  // the run says it, with the node's name
  }
  infer_run(question, job);
}

StepRange range_of(std::int64_t start, std::int64_t end, const std::string& leftover) {
  StepRange range{.start = checked_cast<int>(start, "start_at_step"),
                  .end = checked_cast<int>(end, "end_at_step")};
  if (leftover == "disable") range.leftover = StepRange::Leftover::kRemove;
  return range;
}

}  // namespace

void KSampler::execute(Context& ctx) {
  const std::string sampler = ctx[sampler_name];
  SampleJob job;
  job.guide = {ctx[model], ctx[positive], ctx[negative], ctx[cfg]};
  job.sampler.name = sampler;
  job.sigmas = levels_for(job.guide.model, sampler, ctx[scheduler],
                          checked_cast<int>(ctx[steps], "steps"), ctx[denoise]);
  job.noise.seed = ctx[seed];
  job.latent = ctx[latent_image];
  ctx[latent] = sample(ctx, job).latent;
}

void KSampler::infer(Infer& question) {
  infer_sampler<KSampler>(question,
                          [&](const Value& model, const std::string& sampler,
                              const std::string& schedule, int steps) -> std::optional<Sigmas> {
                            const std::optional<double> part = question[denoise];
                            if (!part) return {};
                            return levels_for(model, sampler, schedule, steps, *part);
                          });
}

void KSamplerAdvanced::execute(Context& ctx) {
  const std::string sampler = ctx[sampler_name];
  SampleJob job;
  job.guide = {ctx[model], ctx[positive], ctx[negative], ctx[cfg]};
  job.sampler.name = sampler;
  const Sigmas whole = levels_for(job.guide.model, sampler, ctx[scheduler],
                                  checked_cast<int>(ctx[steps], "steps"), 1.0);
  const StepRange range = range_of(ctx[start_at_step], ctx[end_at_step], ctx[leftover]);
  job.sigmas = with_user_errors([&] { return cut_sigmas(whole, range); });
  job.noise = {ctx[noise_seed], ctx[add_noise] == "enable"};
  job.latent = ctx[latent_image];
  ctx[latent] = sample(ctx, job).latent;
}

void KSamplerAdvanced::infer(Infer& question) {
  infer_sampler<KSamplerAdvanced>(
      question,
      [&](const Value& model, const std::string& sampler, const std::string& schedule,
          int steps) -> std::optional<Sigmas> {
        const auto start = question[start_at_step], end = question[end_at_step];
        const std::optional<std::string> rest = question[leftover];
        if (!start || !end || !rest) return {};
        const Sigmas whole = levels_for(model, sampler, schedule, steps, 1.0);
        return with_user_errors([&] { return cut_sigmas(whole, range_of(*start, *end, *rest)); });
      });
}

}  // namespace heddle::samplers
