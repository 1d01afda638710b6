// DPM-Solver++ SDE of one step, as k-diffusion has it: two evaluations, each after an ancestral
// step in the ratio of noise to signal.
#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

// The level at part `r` of the way between two, in the single precision and the order of ComfyUI:
// where the noise changes from one piece of its path to the next.
float middle_level(const Step& step, float r) {
  const auto lambda = [&step](float level) {
    return step.flow() ? -std::log(level / (1.0f - level)) : -std::log(level);
  };
  const float from = lambda(step.run.sigmas[step.i]);
  const float to = lambda(step.run.sigmas[step.i + 1]);
  // As PyTorch's lerp(), from the nearer end.
  const float middle = r < 0.5f ? from + r * (to - from) : to - (to - from) * (1.0f - r);
  return step.flow() ? 1.0f / (1.0f + std::exp(middle)) : std::exp(-middle);
}

// From the start to level `to` with the prediction `denoised`.
Expr ancestral_step(const Step& step, double to, const Expr& denoised) {
  const double lambda = step.lambda(step.sigma());
  const double alpha = step.alpha(to);
  const Landing landing = ancestral(std::exp(-lambda), std::exp(-step.lambda(to)), step.run.eta);
  const double h = -std::log(landing.down) - lambda;
  return (alpha / step.alpha(step.sigma()) * std::exp(-h)) * start() +
         (-alpha * std::expm1(-h)) * denoised +
         fresh_noise(alpha * landing.up * step.run.noise_factor);
}

std::vector<Evaluation> dpmpp_sde(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  const double r = step.option("r", 0.5);
  const double lambda = step.lambda(from);
  const double middle = step.level_at(lambda + r * (step.lambda(to) - lambda));
  const double weight = 1.0 / (2.0 * r);
  Evaluation first = inner(0, from, ancestral_step(step, middle, own(0)));
  first.noise_from = step.run.sigmas[step.i];
  first.noise_to = middle_level(step, static_cast<float>(r));
  return {first,
          last(1, middle, ancestral_step(step, to, (1.0 - weight) * own(0) + weight * own(1)))};
}

constexpr std::uint32_t kFlags =
    HEDDLE_SAMPLER_DRAWS_NOISE | HEDDLE_SAMPLER_FINITE_FIRST_LEVEL | HEDDLE_SAMPLER_BROWNIAN;
const Registered kDpmPpSde({.name = "dpmpp_sde",
                            .place = 160,
                            .step = &dpmpp_sde,
                            .flags = kFlags,
                            .options = {sampler_option("r", 0, 100)}});
const Registered kDpmPpSdeGpu({.name = "dpmpp_sde_gpu",
                               .place = 170,
                               .step = &dpmpp_sde,
                               .flags = kFlags,
                               .options = {sampler_option("r", 0, 100)}});

}  // namespace
}  // namespace heddle::samplers::steps
