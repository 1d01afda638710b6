// CFG++ (Chung et al. 2024): the picture by the guided prediction, the noise by the one without the
// positive conditioning.
#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

std::vector<Evaluation> euler_plus(const Step& step, double eta) {
  const double from = step.sigma();
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  const double alpha = step.alpha(from);
  const double alpha_next = step.alpha(to);
  const Landing landing = ancestral(from / alpha, to / alpha_next, eta);
  const Expr noise_found = (1.0 / from) * (start() - alpha * own_plain(0));
  const Expr x = alpha_next * own(0) + (alpha_next * landing.down) * noise_found;
  return {last(0, from, x + fresh_noise(alpha_next * landing.up * step.run.noise_factor))};
}

std::vector<Evaluation> euler_cfg_pp(const Step& step) {
  if (step.option("alternative", 0.0) == 0.0) return euler_plus(step, 0.0);
  // ComfyUI's other form: Euler's step with a slope that the change by the guidance is taken from.
  const double from = step.sigma();
  const Expr changed = start() - own(0) + own_plain(0);
  return {last(0, from, start() + (step.next() - from) * slope(changed, own(0), from))};
}

std::vector<Evaluation> euler_ancestral_cfg_pp(const Step& step) {
  return euler_plus(step, step.run.eta);
}

const Registered kEulerPlus({.name = "euler_cfg_pp",
                             .place = 20,
                             .step = &euler_cfg_pp,
                             .flags = HEDDLE_SAMPLER_LOOKS_TWICE,
                             .options = {sampler_option("alternative", 0, 1)}});
const Registered kEulerAncestralPlus({.name = "euler_ancestral_cfg_pp",
                                      .place = 40,
                                      .step = &euler_ancestral_cfg_pp,
                                      .flags = HEDDLE_SAMPLER_DRAWS_NOISE |
                                               HEDDLE_SAMPLER_LOOKS_TWICE});

}  // namespace
}  // namespace heddle::samplers::steps
