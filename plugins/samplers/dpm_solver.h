// DPM-Solver (Lu et al. 2022) of orders 1 to 3, as dpm_fast and dpm_adaptive take it. Time is
// -ln sigma. Pure; any thread.
#pragma once

#include <array>
#include <vector>

#include "sampler_algebra.h"

namespace heddle::samplers::steps {

// A step of DPM-Solver from time `from` to `to`, whose evaluations found `denoised`: number k of
// them (0 first) comes at levels[k], and leads to points[k]. The last point is the end of the step.
struct DpmSolverStep {
  std::vector<double> levels;
  std::vector<Expr> points;
  Expr lower;  // the end by order - 1, from the same evaluations but the last; for orders 2 and 3
};
// REQUIRES: order is 1 to 3, as many symbols.
DpmSolverStep dpm_solver_step(int order, double from, double to, const std::vector<Expr>& denoised);

// The time at which a run of these samplers ends: that of the last level above 0.
double dpm_solver_end(const Step& step);

}  // namespace heddle::samplers::steps
