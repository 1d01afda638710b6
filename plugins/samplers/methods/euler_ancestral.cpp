#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

std::vector<Evaluation> euler_ancestral(const Step& step) {
  const Landing landing = land(step);
  if (landing.down == 0.0) return to_denoised(step);
  return {
      last(0, step.sigma(), landed(step, landing, towards(own(0), step.sigma(), landing.down)))};
}

const Registered kEulerAncestral({.name = "euler_ancestral",
                                  .place = 30,
                                  .step = &euler_ancestral,
                                  .flags = HEDDLE_SAMPLER_DRAWS_NOISE});

}  // namespace
}  // namespace heddle::samplers::steps
