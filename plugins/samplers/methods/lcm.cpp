// Luo et al. 2023: the clean picture, noised again.
#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

std::vector<Evaluation> lcm(const Step& step) {
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  const double first = step.run.noise_factor;
  const double part = step.count() > 1 ? double(step.i) / double(step.count() - 1) : 0.0;
  const double factor = first + (step.option("s_noise_end", first) - first) * part;
  Evaluation evaluation = last(0, step.sigma(), step.alpha(to) * own(0) + fresh_noise(to * factor));
  evaluation.noise_clip = step.option("noise_clip_std", 0.0);
  return {evaluation};
}

const Registered kLcm({.name = "lcm",
                       .place = 270,
                       .step = &lcm,
                       .flags = HEDDLE_SAMPLER_DRAWS_NOISE,
                       .options = {sampler_option("s_noise_end", 0, 64),
                                   sampler_option("noise_clip_std", 0, 10)}});

}  // namespace
}  // namespace heddle::samplers::steps
