#include "sample.h"

#include <algorithm>
#include <cmath>
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
#include "sampler_loop.h"

namespace heddle::samplers {
namespace {

// D, what the model sees in a point: its sets, guidance and the mask.
class Denoiser {
 public:
  // `looks_twice`: what the model sees without the positive conditioning is asked for, too.
  Denoiser(Context& ctx, const Guide& guide, const ModelSampling& sampling, std::int64_t items,
           bool looks_twice)
      : ctx_(ctx), sampling_(sampling), looks_twice_(looks_twice) {
    const Guidance mix = guidance(guide.cfg);
    const bool positive_draws = add_sets(guide.positive, guide.model, items, mix.conditioned);
    bool negative_draws = true;
    negative_from_ = constants_.size();
    if (mix.needs_unconditioned() || (looks_twice && guide.negative)) {
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
      for (const Evaluation& evaluation : step)
        timesteps.push_back(sampling_.levels.timestep(float(evaluation.sigma)));
    evaluation_ = 0;
    if (timesteps.empty()) return;
    const Tensor schedule = ctx_.make_host({std::int64_t(timesteps.size())}, HEDDLE_F32);
    std::copy(timesteps.begin(), timesteps.end(), schedule.data<float>());
    const Value record = Record().set("timestep", value_of(schedule)).value();
    session_.emplace(ctx_, model, constants_, record,
                     checked_cast<std::uint32_t>(timesteps.size(), "steps"));
  }

  void use_mask(const std::optional<NoiseMask>& mask) { mask_ = mask; }

  // The next evaluation.
  Seen operator()(const Tensor& point, double sigma) {
    Tensor x = point;
    if (mask_) {
      constexpr double kNoHighest = std::numeric_limits<double>::max();
      x = mask_->before(ctx_, x, noise_scaling(sampling_.prediction, sigma, kNoHighest));
    }
    const double timestep = sampling_.levels.timestep(float(sigma));
    const ModelTerms terms = model_terms(sampling_.prediction, sigma, timestep);
    const Value input = Record().set("x", value_of(sum_of(ctx_, {{terms.input, x}}))).value();
    const std::vector<Value> outputs =
        session_->step(evaluation_++, std::vector<Value>(constants_.size(), input));
    std::vector<ops::Term> parts{{terms.x * drawn_, x}};
    for (std::size_t i = 0; i < outputs.size(); ++i)
      parts.push_back({terms.output * weights_[i], outputs[i].field("out").as<Tensor>()});
    const Tensor denoised = or_zeros(ctx_, sum_of(ctx_, std::move(parts)), x.shape());
    Seen seen{mask_ ? mask_->after(ctx_, denoised) : denoised, {}};
    if (looks_twice_) seen.unconditioned = unconditioned(terms, x, outputs);
    return seen;
  }

 private:
  // As ComfyUI, zeros without a negative conditioning, and not masked.
  Tensor unconditioned(const ModelTerms& terms, const Tensor& x,
                       const std::vector<Value>& outputs) const {
    if (negative_from_ == outputs.size()) return or_zeros(ctx_, {}, x.shape());
    double shares = 0.0;
    std::vector<ops::Term> parts{{0.0, x}};
    for (std::size_t i = negative_from_; i < outputs.size(); ++i) {
      parts.push_back({terms.output * shares_[i], outputs[i].field("out").as<Tensor>()});
      shares += shares_[i];
    }
    // Without any strength a list counts as a picture of zeros.
    parts.front().coefficient = shares == 0.0 ? 0.0 : terms.x;
    return or_zeros(ctx_, sum_of(ctx_, std::move(parts)), x.shape());
  }

  // False: none of them has any strength.
  bool add_sets(const Value& conditioning, const Value& model, std::int64_t items, double factor) {
    bool draws = false;
    for (ConditioningSet& set : conditioning_sets(ctx_, conditioning, model, items)) {
      constants_.push_back(std::move(set.constants));
      weights_.push_back(factor * set.weight);
      shares_.push_back(set.weight);
      draws = draws || set.weight != 0;
    }
    return draws;
  }

  Context& ctx_;
  const ModelSampling& sampling_;
  bool looks_twice_;
  std::vector<Value> constants_;
  std::size_t negative_from_ = 0;  // the sets from here on are of the negative conditioning
  std::vector<double> shares_;     // of the sets in their conditioning
  std::vector<double> weights_;    // of the sets' outputs; they add up to `drawn_`
  double drawn_ = 1.0;             // less where all strengths of a conditioning are 0
  std::optional<NoiseMask> mask_;
  std::optional<Session> session_;
  std::uint32_t evaluation_ = 0;
};

// How far two results of an attempt lie apart (heddle/diffusion/samplers.h).
class ErrorMeter {
 public:
  ErrorMeter(Context& ctx, const Tensor& x) : ctx_(ctx), memory_(ctx), accepted_(read(x)) {}

  double error(const SamplerLoop::Results& results, const heddle_sampler_attempt& attempt) {
    const std::pmr::vector<float> next = read(results.next);
    lower_ = read(results.lower);
    double squares = 0.0;
    for (std::size_t k = 0; k < next.size(); ++k) {
      const double size = std::max(std::abs(lower_[k]), std::abs(accepted_[k]));
      const double allowed = std::max(attempt.absolute, attempt.relative * size);
      const double part = (double(lower_[k]) - next[k]) / allowed;
      squares += part * part;
    }
    return std::sqrt(squares / double(next.size()));
  }
  void accept() { accepted_ = lower_; }

 private:
  std::pmr::vector<float> read(const Tensor& tensor) {
    std::pmr::vector<float> values(std::size_t(tensor.count()), &memory_);
    read_to<float>(ctx_, tensor, values);
    return values;
  }

  Context& ctx_;
  HostMemory memory_;
  std::pmr::vector<float> accepted_, lower_{&memory_};
};

// Follows a sampler from step to step, or from attempt to attempt.
class Run {
 public:
  Run(Context& ctx, const Value& settings, SamplerLoop& loop) : ctx_(ctx), loop_(loop) {
    if (ctx.wants_preview()) preview_ = PreviewMap::of(settings);
  }

  void follow(const SamplerPlan& plan) {
    for (std::size_t i = 0; i < plan.size(); ++i) {
      if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
      loop_.step(plan[i]);
      show(double(i + 1) / double(plan.size()), i + 1, plan.size());
    }
  }

  // `open` opens the model for the evaluations of one attempt.
  template <class F>
  void follow_attempts(const heddle_sampler_desc& sampler, const RunPlan& run, F&& open) {
    constexpr std::size_t kMost = 10000;  // a step that shrinks and shrinks ends nowhere
    ErrorMeter meter(ctx_, loop_.result());
    heddle_sampler_attempt state{.size = sizeof state, .error = -1.0};
    SamplerLoop::Results results;
    for (std::size_t count = 1; count <= kMost; ++count) {
      if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
      const SamplerPlan plan = {next_attempt(sampler, run.told->get(), state)};
      if (results.next && state.accepted != 0) {
        loop_.accept(results.next, state.noise);
        meter.accept();
        show(state.progress, count, run.evaluations());
      }
      if (plan.front().empty()) return;
      open(plan);
      results = loop_.attempt(plan.front());
      state.error = meter.error(results, state);
      state.accepted = 0;
    }
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string("the sampler ") + sampler.name + " made " + std::to_string(kMost) +
                    " attempts and did not arrive. Give greater tolerances.");
  }

 private:
  void show(double part, std::size_t step, std::size_t count) {
    ctx_.progress(part);
    if (preview_ && loop_.last_denoised())
      show_preview(ctx_, *preview_, loop_.last_denoised(),
                   checked_cast<std::uint32_t>(step, "steps"),
                   checked_cast<std::uint32_t>(std::max(step, count), "steps"));
  }

  Context& ctx_;
  SamplerLoop& loop_;
  std::optional<PreviewMap> preview_;
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

  Tensor noise;
  if (job.noise.add) noise = upload(noise_of(latent, job.noise.seed, memory));
  const NoiseScaling mix =
      noise_scaling(sampling.prediction, run.levels.front(), sampling.levels.sigma_max());
  std::vector<ops::Term> beginning;
  if (noise) beginning.push_back({mix.noise, noise});
  if (!latent.empty) beginning.push_back({mix.latent, samples});
  const Tensor x = or_zeros(ctx, sum_of(ctx, std::move(beginning)), latent.shape);

  const auto asks = [&sampler](std::uint32_t flag) { return (sampler.flags & flag) != 0; };
  Denoiser denoiser(ctx, job.guide, sampling, latent.items(), asks(HEDDLE_SAMPLER_LOOKS_TWICE));
  Tensor mask_noise = noise;
  if (asks(HEDDLE_SAMPLER_NEW_MASK_NOISE) && has_noise_mask(latent))
    mask_noise = upload(initial_noise(job.noise.seed + 1, latent.values.size(), memory));
  denoiser.use_mask(NoiseMask::of(ctx, latent, samples, mask_noise));
  denoiser.open(job.guide.model, run.steps);
  SamplerLoop loop(
      ctx, [&](const Tensor& point, double sigma) { return denoiser(point, sigma); },
      asks(HEDDLE_SAMPLER_BROWNIAN) ? NoiseSource(ctx, latent.shape, job.noise.seed, run.levels)
                                    : NoiseSource(ctx, latent.shape, job.noise.seed),
      run.steps, x);
  Run steps(ctx, settings, loop);
  if (sampler.attempt != nullptr)
    steps.follow_attempts(sampler, run,
                          [&](const SamplerPlan& plan) { denoiser.open(job.guide.model, plan); });
  else
    steps.follow(run.steps);
  const Tensor result = or_zeros(ctx, sum_of(ctx, {{run.end_scale, loop.result()}}), latent.shape);
  const Value end = with_samples(latent, result);
  return {end, loop.last_denoised() ? with_samples(latent, loop.last_denoised()) : end};
}

}  // namespace heddle::samplers
