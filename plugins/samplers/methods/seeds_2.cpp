// SEEDS-2 (Gonzalez et al. 2023), and the exponential Heun method, which is its form with the
// second evaluation at the end of the step.
#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

struct Seeds2 {
  double eta, noise_factor, r;
  bool second_phi;  // weights by phi_2, not by phi_1 alone
};

// y phi2(y)
double y_phi2(double y) { return std::expm1(y) / y - 1.0; }

std::vector<Evaluation> seeds_2_step(const Step& step, const Seeds2& form) {
  const double from = step.sigma();
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  const double lambda = step.lambda(from);
  const double h = step.lambda(to) - lambda;
  const double h_eta = h * (form.eta + 1.0);
  const double r = form.r;
  const double middle = r == 1.0 ? to : step.level_at(lambda + r * h);
  const bool draws = form.eta > 0.0 && form.noise_factor > 0.0;

  const Expr halfway = (middle / from * std::exp(-r * h * form.eta)) * start() +
                       (-step.alpha(middle) * std::expm1(-r * h_eta)) * own(0);
  const double weight = form.second_phi ? y_phi2(-h_eta) / r : std::expm1(-h_eta) / (2.0 * r);
  const Expr drift = (std::expm1(-h_eta) - weight) * own(0) + weight * own(1);
  const Expr x = (to / from * std::exp(-h * form.eta)) * start() - step.alpha(to) * drift;
  if (!draws) return {inner(0, from, halfway), last(1, middle, x)};

  const double first = std::sqrt(-std::expm1(-2.0 * r * h * form.eta));
  const double segment = (r - 1.0) * h * form.eta;
  const double second = std::sqrt(-std::expm1(2.0 * segment));
  const double scale = to * form.noise_factor;
  const Expr drawn = second == 0.0 ? unused_noise() : fresh_noise(scale * second);
  return {inner(0, from, halfway + fresh_noise(middle * form.noise_factor * first)),
          last(1, middle, x + (scale * first * std::exp(segment)) * earlier_noise(0) + drawn)};
}

std::vector<Evaluation> seeds_2(const Step& step) {
  return seeds_2_step(step, {step.run.eta, step.run.noise_factor, step.option("r", 0.5),
                             step.option("phi", 1.0) == 2.0});
}

std::vector<Evaluation> exp_heun(const Step& step) {
  return seeds_2_step(step, {0.0, 0.0, 1.0, true});
}

std::vector<Evaluation> exp_heun_sde(const Step& step) {
  return seeds_2_step(step, {step.run.eta, step.run.noise_factor, 1.0, true});
}

constexpr std::uint32_t kSeedsFlags =
    HEDDLE_SAMPLER_DRAWS_NOISE | HEDDLE_SAMPLER_FINITE_FIRST_LEVEL;
const Registered kExpHeun({.name = "exp_heun_2_x0",
                           .place = 70,
                           .step = &exp_heun,
                           .flags = HEDDLE_SAMPLER_FINITE_FIRST_LEVEL});
const Registered kExpHeunSde(
    {.name = "exp_heun_2_x0_sde", .place = 80, .step = &exp_heun_sde, .flags = kSeedsFlags});
const Registered kSeeds2({.name = "seeds_2",
                          .place = 360,
                          .step = &seeds_2,
                          .flags = kSeedsFlags,
                          .options = {sampler_option("r", 0.01, 1), sampler_option("phi", 1, 2)}});

}  // namespace
}  // namespace heddle::samplers::steps
