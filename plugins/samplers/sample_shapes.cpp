#include "sample_shapes.h"

#include <heddle/checked.hpp>

#include "brownian_tree.h"
#include "conditioning.h"
#include "model_sampling.h"
#include "prediction.h"
#include "run_plan.h"

namespace heddle::samplers {
namespace {

// The constants of one set; none when an entry lacks what the model reads.
std::optional<Infer::Set> set_of(const EntryShapes& entry,
                                 const std::vector<ConditioningInput>& inputs, std::int64_t items) {
  using Kind = ConditioningInput::Kind;
  Infer::Set set;
  for (const auto& [kind, name] : inputs) {
    if (kind == Kind::kGuidance) {
      set.constants.push_back({name, HEDDLE_F32, {1}});
      continue;
    }
    const auto& tensor = kind == Kind::kText ? std::optional(entry.text) : entry.pooled;
    if (!tensor || tensor->rank == 0) return {};
    Shape shape = shape_of(*tensor);
    shape[0] = fitted_rows(shape[0], items);
    set.constants.push_back({name, tensor->dtype, shape});
  }
  return set;
}

double count_of(const Shape& shape) {
  double count = 1;
  for (const std::int64_t size : shape) count *= double(size);
  return count;
}

// Sums over the latent: for each evaluation the input, the clean picture of all sets and the next
// point, besides the noise at the beginning and the scaling at the end. Each term is read once.
void infer_cost(Infer& question, const JobShapes& job, const RunPlan& run, std::size_t sets,
                const heddle_sampler_desc& sampler) {
  constexpr double kTermsOfAPoint = 3, kOnce = 6, kBytes = 4;
  const double terms = double(run.evaluations()) * (double(sets) + 1 + kTermsOfAPoint) + kOnce;
  const double count = count_of(job.latent);
  double kept = 4.0 + double(sets);
  for (const std::int32_t of :
       {HEDDLE_SAMPLER_DENOISED, HEDDLE_SAMPLER_UNCONDITIONED, HEDDLE_SAMPLER_SLOPE,
        HEDDLE_SAMPLER_UNCONDITIONED_SLOPE, HEDDLE_SAMPLER_NOISE})
    kept += double(kept_of(run.steps, of));
  question.cost(2 * terms * count, kBytes * terms * count,
                checked_cast<std::uint64_t>(kBytes * kept * count, "bytes"));
  // The numbers of the latent and of the noise, and those of the levels, stay in host memory.
  constexpr double kInHost = 2, kBytesOfALevel = 16, kLittle = 1024;
  double in_host = kBytes * kInHost * count + kBytesOfALevel * double(run.evaluations()) + kLittle;
  if ((sampler.flags & HEDDLE_SAMPLER_BROWNIAN) != 0)
    in_host += double(BrownianTree::scratch_bytes(std::size_t(count)));
  if (sampler.attempt != nullptr) in_host += 3 * kBytes * count;
  question.host_scratch(checked_cast<std::uint64_t>(in_host, "bytes"));
}

}  // namespace

void infer_run(Infer& question, const JobShapes& job) {
  if (!job.model.is(HEDDLE_KIND_MODEL) || job.positive.empty() || !job.cfg || !job.sampler ||
      !job.sigmas || job.latent.empty())
    return;
  if (job.sigmas->empty()) return;  // the latent is handed on
  try {
    const heddle_sampler_desc& sampler = sampler_named(job.sampler->name);
    const ModelSampling sampling = model_sampling(job.model);
    const RunPlan run = plan_levels(sampler, *job.sampler, *job.sigmas, sampling);
    std::vector<EntryShapes> entries = job.positive;
    const bool looks_twice = (sampler.flags & HEDDLE_SAMPLER_LOOKS_TWICE) != 0;
    if (guidance(*job.cfg).needs_unconditioned() || (looks_twice && !job.negative.empty())) {
      if (job.negative.empty()) return;
      entries.insert(entries.end(), job.negative.begin(), job.negative.end());
    }
    const std::vector<ConditioningInput> inputs = conditioning_inputs(job.model);
    std::vector<Infer::Set> sets;
    for (const EntryShapes& entry : entries) {
      std::optional<Infer::Set> set = set_of(entry, inputs, job.latent.front());
      if (!set) return;
      set->steps.push_back({"x", HEDDLE_F32, job.latent});
      sets.push_back(*std::move(set));
    }
    infer_cost(question, job, run, sets.size(), sampler);
    const std::size_t evaluations = run.evaluations();
    if (evaluations == 0) return;
    question.call(job.model, sets, {{"timestep", HEDDLE_F32, {std::int64_t(evaluations)}}},
                  checked_cast<std::uint32_t>(evaluations, "steps"));
  } catch (const Error&) {
    // The run says it, with the node's name.
  }
}

}  // namespace heddle::samplers
