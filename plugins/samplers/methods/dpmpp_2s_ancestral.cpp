// DPM-Solver++(2S) (Lu et al. 2022b) with ancestral noise.
#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

std::vector<Evaluation> dpmpp_2s_ancestral(const Step& step) {
  const double from = step.sigma();
  const Landing landing = land(step);
  if (landing.down == 0.0) return to_denoised(step);
  double middle = std::sqrt(from * landing.down);
  if (step.flow()) {
    // The ratio of signal to noise is 0 at level 1, and its logarithm has no middle.
    const double lambda = 0.5 * (step.lambda(from) + step.lambda(landing.down));
    middle = from == 1.0 ? 0.9999 : 1.0 / (std::exp(lambda) + 1.0);
  }
  const Expr halfway = towards(own(0), from, middle);
  return {inner(0, from, halfway),
          last(1, middle, landed(step, landing, towards(own(1), from, landing.down)))};
}

// By CFG++ (Chung et al. 2024), flows as all others: x is moved by what the positive conditioning
// changes.
std::vector<Evaluation> dpmpp_2s_ancestral_plus(const Step& step) {
  const double from = step.sigma();
  const Landing landing = ancestral(from, step.next(), step.run.eta);
  if (landing.down == 0.0) return to_denoised(step);
  const double middle = std::sqrt(from * landing.down);
  const auto moved = [&](const Expr& plain, const Expr& denoised, double to) {
    return (to / from) * (start() + own(0) - plain) + (1.0 - to / from) * denoised;
  };
  const Expr arrived = moved(own_plain(1), own(1), landing.down);
  return {inner(0, from, moved(own_plain(0), own(0), middle)),
          last(1, middle, arrived + fresh_noise(landing.up * step.run.noise_factor))};
}

const Registered kDpmPp2sAncestral({.name = "dpmpp_2s_ancestral",
                                    .place = 140,
                                    .step = &dpmpp_2s_ancestral,
                                    .flags = HEDDLE_SAMPLER_DRAWS_NOISE});
const Registered kDpmPp2sAncestralPlus({.name = "dpmpp_2s_ancestral_cfg_pp",
                                        .place = 150,
                                        .step = &dpmpp_2s_ancestral_plus,
                                        .flags = HEDDLE_SAMPLER_DRAWS_NOISE |
                                                 HEDDLE_SAMPLER_LOOKS_TWICE});

}  // namespace
}  // namespace heddle::samplers::steps
