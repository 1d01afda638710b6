// Permenter & Yuan 2023: Euler, with the change of the slope carried on.
#include <array>

#include "plugins/samplers/slope_weights.h"

namespace heddle::samplers::steps {
namespace {

constexpr double kGamma = 2.0;

std::vector<Evaluation> gradient_estimation(const Step& step) {
  if (step.next() == 0.0) return to_denoised(step);
  if (step.i == 0) return euler_step(step);
  return slope_step(step, step.next() - step.sigma(), std::array{kGamma, 1.0 - kGamma});
}

// By CFG++ (Chung et al. 2024): the slope leads away from what the model sees without the positive
// conditioning.
std::vector<Evaluation> gradient_estimation_plus(const Step& step) {
  if (step.next() == 0.0) return to_denoised(step);
  const double from = step.sigma();
  const Expr here = slope(start(), own_plain(0), from);
  Expr x = own(0) + step.next() * here;
  if (step.i > 0) x = x + ((kGamma - 1.0) * (step.next() - from)) * (here - earlier_plain_slope(0));
  return {last(0, from, x)};
}

const Registered kGradient({.name = "gradient_estimation",
                            .place = 345,
                            .step = &gradient_estimation});
const Registered kGradientPlus({.name = "gradient_estimation_cfg_pp",
                                .place = 346,
                                .step = &gradient_estimation_plus,
                                .flags = HEDDLE_SAMPLER_LOOKS_TWICE});

}  // namespace
}  // namespace heddle::samplers::steps
