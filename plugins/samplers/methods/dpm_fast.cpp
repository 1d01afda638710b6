// DPM-Solver-fast (Lu et al. 2022): a given number of evaluations, in steps of order 3 of equal
// length in -ln sigma, with rests of orders 2 and 1. Each evaluation counts as a step of the
// schedule, whose levels but the ends do not matter.
#include "plugins/samplers/dpm_solver.h"

namespace heddle::samplers::steps {
namespace {

std::vector<int> orders_for(int evaluations) {
  const int rest = evaluations % 3;
  std::vector<int> orders(static_cast<std::size_t>(evaluations / 3), 3);
  if (rest != 0) {
    orders.push_back(rest);
  } else {
    orders.back() = 2;
    orders.push_back(1);
  }
  return orders;
}

std::vector<Evaluation> dpm_fast(const Step& step) {
  const std::vector<int> orders = orders_for(static_cast<int>(step.count()));
  std::size_t number = 0, first = 0;
  while (first + static_cast<std::size_t>(orders[number]) <= step.i)
    first += static_cast<std::size_t>(orders[number++]);
  const std::size_t k = step.i - first;

  const double begin = -std::log(double(step.run.sigmas[0])), end = dpm_solver_end(step);
  const auto time = [&](std::size_t n) {
    return begin + (end - begin) * double(n) / double(orders.size());
  };
  std::vector<Expr> denoised;
  for (std::size_t made = 0; made < 3; ++made)
    denoised.push_back(made < k ? past(k - 1 - made) : own(made - k));
  const DpmSolverStep solver =
      dpm_solver_step(orders[number], time(number), time(number + 1), denoised);
  const bool is_last = k + 1 == solver.points.size();
  return {is_last ? last(0, solver.levels[k], solver.points[k])
                  : inner(0, solver.levels[k], solver.points[k])};
}

const Registered kDpmFast({.name = "dpm_fast", .place = 120, .step = &dpm_fast});

}  // namespace
}  // namespace heddle::samplers::steps
