// SEEDS-3 (Gonzalez et al. 2023), with evaluations at the thirds of a step.
#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

std::vector<Evaluation> seeds_3(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  const double eta = step.run.eta;
  const double lambda = step.lambda(from);
  const double h = step.lambda(to) - lambda;
  const double total = h * (eta + 1.0);
  const double level1 = step.level_at(lambda + h / 3.0);
  const double level2 = step.level_at(lambda + 2.0 * h / 3.0);
  // Where the method is without noise, at part `r` of the step.
  const auto moved = [&](double level, double r, const Expr& drift) {
    return (level / from * std::exp(-r * h * eta)) * start() - step.alpha(level) * drift;
  };
  // What an evaluation counts when it corrects the first: y phi2(y) of the part.
  const auto weight = [total](double r, double at) {
    const double y = -r * total;
    return (r / at) * (std::expm1(y) / y - 1.0);
  };
  const double weight2 = weight(2.0 / 3.0, 1.0 / 3.0), weight3 = weight(1.0, 2.0 / 3.0);
  const Expr at1 = moved(level1, 1.0 / 3.0, std::expm1(-total / 3.0) * own(0));
  const Expr at2 = moved(level2, 2.0 / 3.0,
                         (std::expm1(-2.0 * total / 3.0) - weight2) * own(0) + weight2 * own(1));
  const Expr end = moved(to, 1.0, (std::expm1(-total) - weight3) * own(0) + weight3 * own(2));

  // Each third adds a draw and lets what there is decay.
  const double decay = std::exp(-h * eta / 3.0);
  const double spread = std::sqrt(-std::expm1(-2.0 * h * eta / 3.0)) * step.run.noise_factor;
  const auto noisy = [spread](double level, double factor) { return level * spread * factor; };
  return {inner(0, from, at1 + fresh_noise(noisy(level1, 1.0))),
          inner(1, level1,
                at2 + noisy(level2, decay) * earlier_noise(0) + fresh_noise(noisy(level2, 1.0))),
          last(2, level2,
               end + noisy(to, decay * decay) * earlier_noise(1) +
                   noisy(to, decay) * earlier_noise(0) + fresh_noise(noisy(to, 1.0)))};
}

const Registered kSeeds3({.name = "seeds_3",
                          .place = 370,
                          .step = &seeds_3,
                          .flags = HEDDLE_SAMPLER_DRAWS_NOISE | HEDDLE_SAMPLER_FINITE_FIRST_LEVEL});

}  // namespace
}  // namespace heddle::samplers::steps
