#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

Expr difference_now() { return own(0) - past(0); }
Expr difference_before() { return past(0) - past(1); }

// Cui et al. 2023, extended reverse-time SDE, with three stages. The option scale_power makes the
// noise scale a power, that of the plain reverse-time SDE.
std::vector<Evaluation> er_sde(const Step& step) {
  constexpr int kPoints = 200;
  const double from = step.sigma();
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  const auto mu = [&step](double level) { return level / step.alpha(level); };
  const auto scale = [&step](double v) {
    const double power = step.option("scale_power", 0.0);
    return power > 0.0 ? std::pow(v, power) : v * (std::exp(std::pow(v, 0.3)) + 10.0);
  };
  const double stages = step.option("max_stage", 3.0);
  const double mu_from = mu(from);
  const double mu_to = mu(to);
  const double alpha = step.alpha(to);
  const double ratio = scale(mu_to) / scale(mu_from);
  Expr x = (alpha / step.alpha(from) * ratio) * start() + (alpha * (1.0 - ratio)) * own(0);
  if (step.i > 0 && stages > 1.0) {
    const double delta = mu_to - mu_from;
    const double width = -delta / kPoints;
    double inverse = 0.0;
    double weighted = 0.0;
    for (int k = 0; k < kPoints; ++k) {
      const double point = mu_to + k * width;
      inverse += width / scale(point);
      weighted += width * (point - mu_from) / scale(point);
    }
    const double mu_before = mu(step.before(1));
    const Expr slope = (1.0 / (mu_from - mu_before)) * difference_now();
    x = x + (alpha * (delta + scale(mu_to) * inverse)) * slope;
    if (step.i > 1 && stages > 2.0) {
      const double mu_first = mu(step.before(2));
      const Expr slope_before = (1.0 / (mu_before - mu_first)) * difference_before();
      const Expr bend = (2.0 / (mu_from - mu_first)) * (slope - slope_before);
      x = x + (alpha * (delta * delta / 2.0 + scale(mu_to) * weighted)) * bend;
    }
  }
  const double rest = mu_to * mu_to - mu_from * mu_from * ratio * ratio;
  const double spread = alpha * std::sqrt(std::max(rest, 0.0));
  return {last(0, from, x + fresh_noise(spread * step.run.noise_factor))};
}

const Registered kErSde({.name = "er_sde",
                         .place = 350,
                         .step = &er_sde,
                         .flags = HEDDLE_SAMPLER_DRAWS_NOISE | HEDDLE_SAMPLER_FINITE_FIRST_LEVEL,
                         .options = {sampler_option("max_stage", 1, 3),
                                     sampler_option("scale_power", 0, 11)}});

}  // namespace
}  // namespace heddle::samplers::steps
