#include "sample.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>
#include <heddle/resume.hpp>

#include "block_run.h"
#include "denoiser.h"
#include "growing_run.h"
#include "latent.h"
#include "model_sampling.h"
#include "pair_latent.h"
#include "preview.h"
#include "random.h"
#include "run_plan.h"
#include "sampler_loop.h"
#include "video_begin.h"
#include "window_tensors.h"

namespace heddle::samplers {
namespace {

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
  void archive(StateArchive& state) {
    state("accepted", accepted_);
    state("lower values", lower_);
  }

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

void archive_attempt(StateArchive& state, heddle_sampler_attempt& attempt) {
  std::int64_t accepted = attempt.accepted;
  state("attempt accepted", accepted);
  attempt.accepted = std::int32_t(accepted);
  state("attempt error", attempt.error);
  state("attempt noise", attempt.noise);
  state("attempt progress", attempt.progress);
  state("attempt absolute", attempt.absolute);
  state("attempt relative", attempt.relative);
  std::vector<double> own(std::begin(attempt.state), std::end(attempt.state));
  state("attempt state", own);
  own.resize(std::size(attempt.state));
  std::ranges::copy(own, attempt.state);
}

// Follows a sampler from step to step, or from attempt to attempt, from where an earlier call of
// the node was stopped.
class Run {
 public:
  // parts: of pictures and their sound.
  Run(Context& ctx, const Value& settings, SamplerLoop& loop, Denoiser& denoiser,
      std::vector<Shape> parts)
      : ctx_(ctx),
        loop_(loop),
        denoiser_(denoiser),
        previews_(ctx, settings),
        parts_(std::move(parts)) {}

  void follow(const SamplerPlan& plan) {
    std::size_t i = 0;
    const auto archive = [&](StateArchive& state) {
      state("step", i);
      archive_parts(state);
    };
    restore(archive);
    for (; i < plan.size(); ++i) {
      pass_boundary(archive);
      loop_.step(plan[i]);
      show(double(i + 1) / double(plan.size()), i + 1, plan.size());
    }
  }

  void follow_attempts(const heddle_sampler_desc& sampler, const RunPlan& run) {
    constexpr std::size_t kMost = 10000;  // a step that shrinks and shrinks ends nowhere
    ErrorMeter meter(ctx_, loop_.result());
    heddle_sampler_attempt attempt{.size = sizeof attempt, .error = -1.0};
    SamplerLoop::Results results;
    std::size_t count = 1;
    const auto archive = [&](StateArchive& state) {
      state("count", count);
      state("next", results.next);
      state("lower", results.lower);
      archive_attempt(state, attempt);
      meter.archive(state);
      archive_parts(state);
    };
    restore(archive);
    for (; count <= kMost; ++count) {
      pass_boundary(archive);
      const SamplerPlan plan = {next_attempt(sampler, run.told->get(), attempt)};
      if (results.next && attempt.accepted != 0) {
        loop_.accept(results.next, attempt.noise);
        meter.accept();
        show(attempt.progress, count, run.evaluations());
      }
      if (plan.front().empty()) return;
      denoiser_.open(plan);
      results = loop_.attempt(plan.front());
      attempt.error = meter.error(results, attempt);
      attempt.accepted = 0;
    }
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string("the sampler ") + sampler.name + " made " + std::to_string(kMost) +
                    " attempts and did not arrive. Give greater tolerances.");
  }

 private:
  void archive_parts(StateArchive& state) {
    loop_.archive(state);
    denoiser_.archive(state);
  }
  template <class Archive>
  void restore(Archive&& archive) {
    const Value saved = saved_state(ctx_);
    if (!saved) return;
    StateArchive state(ctx_, saved);
    archive(state);
  }
  template <class Archive>
  void pass_boundary(Archive&& archive) {
    at_boundary(ctx_, [&] {
      StateArchive state(ctx_);
      archive(state);
      return state.value();
    });
    if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
  }
  void show(double part, std::size_t step, std::size_t count) {
    ctx_.progress(part);
    if (!loop_.last_denoised() || !ctx_.wants_preview()) return;
    const Tensor& clean = loop_.last_denoised();
    previews_.show(parts_.empty() ? clean : part_of_pair(ctx_, clean, parts_, 0),
                   checked_cast<std::uint32_t>(step, "steps"),
                   checked_cast<std::uint32_t>(std::max(step, count), "steps"));
  }

  Context& ctx_;
  SamplerLoop& loop_;
  Denoiser& denoiser_;
  Previews previews_;
  std::vector<Shape> parts_;
};

// Of the model's settings, for these levels.
std::optional<MaskSteps> mask_steps_of(const Value& settings, const Sigmas& levels,
                                       const ModelSampling& sampling) {
  const Value record = settings.field("mask_steps");
  if (!record) return std::nullopt;
  const float last = std::max(levels.back(), sampling.levels.sigma_min());
  return MaskSteps{.strength = record.get<double>("strength", 1.0),
                   .first_time = sampling.levels.timestep(levels.front()),
                   .last_time = sampling.levels.timestep(last)};
}

}  // namespace

Tensor upload_noise(Context& ctx, const Latent& latent, std::pmr::vector<float> values,
                    const ModelSampling& sampling) {
  scale_noise(values, float(sampling.noise_scale));
  return ctx.upload(latent.shape, HEDDLE_F32, values.data());
}

Beginning beginning_of(Context& ctx, const Noise& noise, const Latent& latent, double level,
                       const ModelSampling& sampling, const Value& settings, HostMemory& memory) {
  Beginning begin{ctx.upload(latent.shape, HEDDLE_F32, latent.values.data()), {}, {}};
  if (noise.add) {
    begin.noise = upload_noise(ctx, latent, noise_of(latent, noise.seed, memory), sampling);
    const auto windows = WindowSchedule::of(settings, latent.shape, {});
    if (windows && windows->rule().freenoise)
      begin.noise = with_places(ctx, begin.noise, windows->axis(),
                                repeated_noise(windows->rule(), windows->full(), noise.seed));
  }
  const NoiseScaling mix = noise_scaling(sampling.prediction, level, sampling.levels.sigma_max());
  std::vector<ops::Term> terms;
  if (begin.noise) terms.push_back({mix.noise, begin.noise});
  if (!latent.empty) terms.push_back({mix.latent, begin.samples});
  begin.x = or_zeros(ctx, sum_of(ctx, std::move(terms)), latent.shape);
  return begin;
}

Sampled sample(Context& ctx, const SampleJob& job) {
  if (job.sampler.growth && !job.sigmas.empty()) return sample_growing(ctx, job);
  if (job.sampler.frames_per_block > 0 && !job.sigmas.empty()) return sample_in_blocks(ctx, job);
  const ModelSampling sampling = model_sampling(job.guide.model);
  const Value settings = model_settings(job.guide.model);
  HostMemory memory(ctx);
  const Latent latent = read_latent(ctx, job.latent, latent_format(settings), memory);
  if (job.sigmas.empty()) {
    const Value same =
        with_samples(ctx, latent, ctx.upload(latent.shape, HEDDLE_F32, latent.values.data()));
    return {same, same};
  }
  if (!latent.parts.empty() && WindowSchedule::of(settings, latent.shape, {}))
    throw Error(HEDDLE_UNSUPPORTED,
                "pictures with their sound are not seen in context windows yet. Leave out the "
                "context windows node.");

  const heddle_sampler_desc& sampler = sampler_named(job.sampler.name);
  const RunPlan run = plan_levels(sampler, job.sampler, job.sigmas, sampling);
  const auto [samples, noise, x] =
      beginning_of(ctx, job.noise, latent, run.levels.front(), sampling, settings, memory);

  const auto asks = [&sampler](std::uint32_t flag) { return (sampler.flags & flag) != 0; };
  const bool looks_twice = asks(HEDDLE_SAMPLER_LOOKS_TWICE);
  const GuidePlan guide(job.guide, sampling, looks_twice);
  Denoiser denoiser(ctx, guide, sampling, latent.shape, run.levels, looks_twice);
  Tensor mask_noise = noise;
  if (asks(HEDDLE_SAMPLER_NEW_MASK_NOISE) && has_noise_mask(latent))
    mask_noise = upload_noise(
        ctx, latent, initial_noise(job.noise.seed + 1, latent.values.size(), memory), sampling);
  std::optional<NoiseMask> mask = NoiseMask::of(ctx, latent, samples, mask_noise, sampling,
                                                mask_steps_of(settings, run.levels, sampling),
                                                settings.get<bool>("mask_clean", false));
  Record shown;
  shown.set("samples", value_of(samples));
  if (mask) shown.set("noise_mask", mask->told());
  if (!latent.parts.empty()) denoiser.use_parts(latent.parts);
  denoiser.show(shown.value(), job.noise.seed);
  denoiser.use_mask(std::move(mask));
  const std::optional<VideoBegin> begin = VideoBegin::of(ctx, settings, latent.shape);
  denoiser.use_begin(begin);
  denoiser.open(run.steps);
  NoiseSource draws = asks(HEDDLE_SAMPLER_BROWNIAN)
                          ? NoiseSource(ctx, latent.shape, job.noise.seed, run.levels)
                          : NoiseSource(ctx, latent.shape, job.noise.seed);
  draws.scale_by(sampling.noise_scale);
  SamplerLoop loop(
      ctx, [&](const Tensor& point, double sigma) { return denoiser(point, sigma); },
      std::move(draws), run.steps, x);
  Run steps(ctx, settings, loop, denoiser, latent.parts);
  if (sampler.attempt != nullptr)
    steps.follow_attempts(sampler, run);
  else
    steps.follow(run.steps);
  Tensor result = or_zeros(ctx, sum_of(ctx, {{run.end_scale, loop.result()}}), latent.shape);
  if (begin && begin->stays()) result = begin->in(ctx, result);
  const Value end = with_samples(ctx, latent, result);
  return {end, loop.last_denoised() ? with_samples(ctx, latent, loop.last_denoised()) : end};
}

}  // namespace heddle::samplers
