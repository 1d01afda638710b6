#include "sample.h"

#include <algorithm>
#include <limits>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "conditioning.h"
#include "latent.h"
#include "model_sampling.h"
#include "noise_mask.h"
#include "preview.h"
#include "random.h"
#include "run_plan.h"

namespace heddle::samplers {
namespace {

// A sum of any number of scaled tensors; terms with a coefficient of 0 are left out. Empty when
// nothing is left.
Tensor sum(Context& ctx, std::vector<ops::Term> terms) {
  std::erase_if(terms, [](const ops::Term& term) { return term.coefficient == 0.0; });
  if (terms.empty()) return {};
  while (terms.size() > 4) {
    const std::vector<ops::Term> first(terms.begin(), terms.begin() + 4);
    terms.erase(terms.begin(), terms.begin() + 3);
    terms.front() = {1.0, ops::combine(ctx, first)};
  }
  if (terms.size() == 1 && terms[0].coefficient == 1.0) return terms[0].x;
  return ops::combine(ctx, terms);
}

Tensor or_zeros(Context& ctx, const Tensor& tensor, const Shape& shape) {
  if (tensor) return tensor;
  const Tensor zeros = ctx.make(shape, HEDDLE_F32);
  ops::fill(ctx, zeros, 0.0);
  return zeros;
}

// D, what the model sees in a point: its sets, guidance and the mask.
class Denoiser {
 public:
  Denoiser(Context& ctx, const Guide& guide, const ModelSampling& sampling, std::int64_t items)
      : ctx_(ctx), sampling_(sampling) {
    const Guidance mix = guidance(guide.cfg);
    const bool positive_draws = add_sets(guide.positive, guide.model, items, mix.conditioned);
    bool negative_draws = true;
    if (mix.needs_unconditioned()) {
      if (!guide.negative)
        throw Error(HEDDLE_INVALID_ARGUMENT, "cfg is " + std::to_string(guide.cfg) +
                                                 " and there is no negative "
                                                 "conditioning. Link one, or set cfg to 1.");
      negative_draws = add_sets(guide.negative, guide.model, items, mix.unconditioned);
    }
    // A list that draws nothing counts as a picture of zeros.
    if (!positive_draws)
      drawn_ = negative_draws ? mix.unconditioned : 0.0;
    else if (!negative_draws)
      drawn_ = mix.conditioned;
  }

  // The levels of all evaluations of the run, in order.
  void open(const Value& model, const SamplerPlan& plan) {
    std::vector<float> timesteps;
    for (const auto& step : plan)
      for (const heddle_sampler_evaluation& evaluation : step)
        timesteps.push_back(sampling_.levels.timestep(float(evaluation.sigma)));
    if (timesteps.empty()) return;
    const Tensor schedule = ctx_.make_host({std::int64_t(timesteps.size())}, HEDDLE_F32);
    std::copy(timesteps.begin(), timesteps.end(), schedule.data<float>());
    const Value record = Record().set("timestep", value_of(schedule)).value();
    session_.emplace(ctx_, model, constants_, record,
                     checked_cast<std::uint32_t>(timesteps.size(), "steps"));
  }

  void use_mask(const std::optional<NoiseMask>& mask) { mask_ = mask; }

  // The next evaluation.
  Tensor operator()(const Tensor& point, double sigma) {
    Tensor x = point;
    if (mask_) {
      constexpr double kNoHighest = std::numeric_limits<double>::max();
      x = mask_->before(ctx_, x, noise_scaling(sampling_.prediction, sigma, kNoHighest));
    }
    const double timestep = sampling_.levels.timestep(float(sigma));
    const ModelTerms terms = model_terms(sampling_.prediction, sigma, timestep);
    const Value input = Record().set("x", value_of(sum(ctx_, {{terms.input, x}}))).value();
    const std::vector<Value> outputs =
        session_->step(evaluation_++, std::vector<Value>(constants_.size(), input));
    std::vector<ops::Term> parts{{terms.x * drawn_, x}};
    for (std::size_t i = 0; i < outputs.size(); ++i)
      parts.push_back({terms.output * weights_[i], outputs[i].field("out").as<Tensor>()});
    const Tensor denoised = or_zeros(ctx_, sum(ctx_, std::move(parts)), x.shape());
    return mask_ ? mask_->after(ctx_, denoised) : denoised;
  }

 private:
  // False: none of them has any strength.
  bool add_sets(const Value& conditioning, const Value& model, std::int64_t items, double factor) {
    bool draws = false;
    for (ConditioningSet& set : conditioning_sets(ctx_, conditioning, model, items)) {
      constants_.push_back(std::move(set.constants));
      weights_.push_back(factor * set.weight);
      draws = draws || set.weight != 0;
    }
    return draws;
  }

  Context& ctx_;
  const ModelSampling& sampling_;
  std::vector<Value> constants_;
  std::vector<double> weights_;  // of the sets' outputs; they add up to `drawn_`
  double drawn_ = 1.0;           // less where all strengths of a conditioning are 0
  std::optional<NoiseMask> mask_;
  std::optional<Session> session_;
  std::uint32_t evaluation_ = 0;
};

// The newest first, at most `most` of them.
class History {
 public:
  explicit History(std::size_t most) : most_(most) {}
  void push(const Tensor& tensor) {
    kept_.insert(kept_.begin(), tensor);
    if (kept_.size() > most_) kept_.pop_back();
  }
  void add_terms(const double* coefficients, std::size_t count, const char* what,
                 std::vector<ops::Term>& terms) const {
    for (std::size_t k = 0; k < count; ++k) {
      if (coefficients[k] == 0.0) continue;
      if (k >= kept_.size())
        throw Error(HEDDLE_INTERNAL, std::string("the sampler wants ") + what + " number " +
                                         std::to_string(k) + " of " + std::to_string(kept_.size()) +
                                         " that are kept. Raise the history in its desc.");
      terms.push_back({coefficients[k], kept_[k]});
    }
  }

 private:
  std::size_t most_;
  std::vector<Tensor> kept_;
};

// The loop of heddle/diffusion/samplers.h.
class Loop {
 public:
  Loop(Context& ctx, Denoiser& denoiser, const heddle_sampler_desc& sampler, Generator generator,
       Tensor x)
      : ctx_(ctx),
        denoiser_(denoiser),
        denoised_(sampler.denoised_history),
        slopes_(sampler.slope_history),
        keeps_slopes_(sampler.slope_history > 0),
        generator_(std::move(generator)),
        start_(x),
        point_(std::move(x)) {}

  void step(const std::vector<heddle_sampler_evaluation>& evaluations) {
    const Tensor x = start_;
    Tensor first;
    for (const heddle_sampler_evaluation& evaluation : evaluations) {
      const Tensor seen = denoiser_(point_, evaluation.sigma);
      denoised_.push(seen);
      if (!first) first = seen;
      const Tensor next = combine(evaluation.next);
      if (evaluation.after == HEDDLE_SAMPLER_CORRECT_START) start_ = combine(evaluation.start);
      if (evaluation.after == HEDDLE_SAMPLER_MOVE_START) start_ = next;
      point_ = next;
    }
    if (!first) return;
    if (keeps_slopes_) {
      const double inverse = 1.0 / evaluations.front().sigma;
      slopes_.push(ops::combine(ctx_, {{inverse, x}, {-inverse, first}}));
    }
    last_denoised_ = first;
  }

  const Tensor& result() const { return point_; }
  const Tensor& last_denoised() const { return last_denoised_; }

 private:
  Tensor combine(const heddle_sampler_sum& wanted) {
    std::vector<ops::Term> terms{{wanted.x, start_}};
    denoised_.add_terms(wanted.denoised, HEDDLE_SAMPLER_DENOISED, "evaluation", terms);
    slopes_.add_terms(wanted.slopes, HEDDLE_SAMPLER_SLOPES, "slope", terms);
    if (wanted.noise != 0.0) terms.push_back({wanted.noise, fresh_noise()});
    return or_zeros(ctx_, sum(ctx_, std::move(terms)), start_.shape());
  }

  Tensor fresh_noise() {
    HostMemory memory(ctx_);
    std::pmr::vector<float> values(std::size_t(start_.count()), &memory);
    generator_.normal(values);
    return ctx_.upload(start_.shape(), HEDDLE_F32, values.data());
  }

  Context& ctx_;
  Denoiser& denoiser_;
  History denoised_, slopes_;
  bool keeps_slopes_;
  Generator generator_;
  Tensor start_, point_, last_denoised_;
};

}  // namespace

Sampled sample(Context& ctx, const SampleJob& job) {
  const ModelSampling sampling = model_sampling(job.guide.model);
  const Value settings = model_settings(job.guide.model);
  HostMemory memory(ctx);
  const Latent latent = read_latent(ctx, job.latent, latent_format(settings), memory);
  const auto upload = [&](const std::pmr::vector<float>& values) {
    return ctx.upload(latent.shape, HEDDLE_F32, values.data());
  };
  const Tensor samples = upload(latent.values);
  if (job.sigmas.empty()) {
    const Value same = with_samples(latent, samples);
    return {same, same};
  }

  const heddle_sampler_desc& sampler = sampler_named(job.sampler.name);
  const RunPlan run = plan_levels(sampler, job.sampler, job.sigmas, sampling);
  const SamplerPlan& plan = run.steps;

  Tensor noise;
  if (job.noise.add) noise = upload(noise_of(latent, job.noise.seed, memory));
  const NoiseScaling mix =
      noise_scaling(sampling.prediction, run.levels.front(), sampling.levels.sigma_max());
  std::vector<ops::Term> beginning;
  if (noise) beginning.push_back({mix.noise, noise});
  if (!latent.empty) beginning.push_back({mix.latent, samples});
  const Tensor x = or_zeros(ctx, sum(ctx, std::move(beginning)), latent.shape);

  Denoiser denoiser(ctx, job.guide, sampling, latent.items());
  denoiser.use_mask(NoiseMask::of(ctx, latent, samples, noise));
  denoiser.open(job.guide.model, plan);
  // ComfyUI draws the sampler's own noise with the next seed, so as not to repeat the initial one.
  Loop loop(ctx, denoiser, sampler, Generator(job.noise.seed + 1), x);
  const std::optional<PreviewMap> preview =
      ctx.wants_preview() ? PreviewMap::of(settings) : std::nullopt;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    loop.step(plan[i]);
    ctx.progress(double(i + 1) / double(plan.size()));
    if (preview && loop.last_denoised())
      show_preview(ctx, *preview, loop.last_denoised(), std::uint32_t(i + 1),
                   checked_cast<std::uint32_t>(plan.size(), "steps"));
  }
  const Tensor result = or_zeros(ctx, sum(ctx, {{run.end_scale, loop.result()}}), latent.shape);
  const Value end = with_samples(latent, result);
  return {end, loop.last_denoised() ? with_samples(latent, loop.last_denoised()) : end};
}

}  // namespace heddle::samplers
