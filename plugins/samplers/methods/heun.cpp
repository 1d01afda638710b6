#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

Expr own_slope(const Step& step) { return slope(start(), own(0), step.sigma()); }

// Karras et al. 2022, algorithm 1 without churn.
std::vector<Evaluation> heun(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  if (to == 0.0) return euler_step(step);
  const Expr guess = towards(own(0), from, to);
  const Expr mean = 0.5 * (own_slope(step) + slope(guess, own(1), to));
  return {inner(0, from, guess), last(1, to, start() + (to - from) * mean)};
}

// Heun with weights that trust later slopes by their level, three of them while the schedule lasts.
std::vector<Evaluation> heun_pp2(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  const std::size_t steps_left = step.count() - step.i;
  if (steps_left == 1 || to == 0.0) return euler_step(step);
  const double top = step.run.sigmas[0];
  const Expr second = towards(own(0), from, to);
  const Expr slope1 = own_slope(step);
  const Expr slope2 = slope(second, own(1), to);
  if (steps_left == 2) {
    const double weight2 = to / (2.0 * top);
    const Expr mean = (1.0 - weight2) * slope1 + weight2 * slope2;
    return {inner(0, from, second), last(1, to, start() + (to - from) * mean)};
  }
  const double after = step.run.sigmas[step.i + 2];
  const Expr third = second + (after - to) * slope2;
  const Expr slope3 = slope(third, own(2), after);
  const double weight2 = to / (3.0 * top);
  const double weight3 = after / (3.0 * top);
  const Expr mean = (1.0 - weight2 - weight3) * slope1 + weight2 * slope2 + weight3 * slope3;
  return {inner(0, from, second), inner(1, to, third),
          last(2, after, start() + (to - from) * mean)};
}

const Registered kHeun({.name = "heun", .place = 50, .step = &heun});
const Registered kHeunPp2({.name = "heunpp2", .place = 60, .step = &heun_pp2});

}  // namespace
}  // namespace heddle::samplers::steps
