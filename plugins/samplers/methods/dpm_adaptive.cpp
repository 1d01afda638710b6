// DPM-Solver-12 and -23 (Lu et al. 2022), with the step size by a PID controller (Soederlind 2003)
// as k-diffusion has it.
#include <algorithm>
#include <stdexcept>

#include "plugins/samplers/dpm_solver.h"

namespace heddle::samplers::steps {
namespace {

// What stands where in the sampler's own state.
struct AdaptiveState {
  double& time;    // where the attempt begins
  double& h;       // the step to try
  double& recent;  // 1 / error of the accepted attempts before; 0: none yet
  double& older;
  double& to;  // of the attempt
  double& up;  // noise of the attempt, when it is accepted

  explicit AdaptiveState(heddle_sampler_attempt& attempt)
      : time(attempt.state[0]),
        h(attempt.state[1]),
        recent(attempt.state[2]),
        older(attempt.state[3]),
        to(attempt.state[4]),
        up(attempt.state[5]) {}
};

// Judges the last attempt and sets the next step.
bool judge(const Step& first, AdaptiveState& state, double error, double order) {
  constexpr double kTiny = 1e-8;
  const double p = first.option("pcoeff", 0.0), i = first.option("icoeff", 1.0),
               d = first.option("dcoeff", 0.0);
  const double inverse = 1.0 / (error + kTiny);
  if (state.recent == 0.0) state.recent = state.older = inverse;
  const double wish = std::pow(inverse, (p + i + d) / order) *
                      std::pow(state.recent, -(p + 2.0 * d) / order) *
                      std::pow(state.older, d / order);
  const double factor = 1.0 + std::atan(wish - 1.0);
  state.h *= factor;
  if (factor < first.option("accept_safety", 0.81)) return false;
  state.older = state.recent;
  state.recent = inverse;
  state.time = state.to;
  return true;
}

std::vector<Evaluation> dpm_adaptive(const Step& first, heddle_sampler_attempt& attempt) {
  constexpr double kNear = 1e-5;
  const int order = first.option("order", 3.0) == 2.0 ? 2 : 3;
  const double eta = first.option("eta", 0.0);
  const double begin = -std::log(double(first.run.sigmas[0])), end = dpm_solver_end(first);
  AdaptiveState state(attempt);
  if (attempt.error < 0.0) {
    state.time = begin;
    state.h = std::abs(first.option("h_init", 0.05));
  } else {
    attempt.accepted = judge(first, state, attempt.error, eta > 0.0 ? 1.5 : order) ? 1 : 0;
    attempt.noise = attempt.accepted != 0 ? state.up * first.run.noise_factor : 0.0;
  }
  attempt.progress = end > begin ? (state.time - begin) / (end - begin) : 1.0;
  attempt.absolute = first.option("atol", 0.0078);
  attempt.relative = first.option("rtol", 0.05);
  if (!(state.time < end - kNear)) return {};

  if (!(state.time + state.h > state.time)) {
    throw std::invalid_argument(
        "sampler dpm_adaptive: its step became 0. Give a greater h_init or greater tolerances.");
  }
  state.to = std::min(end, state.time + state.h);
  double land_at = state.to;
  if (eta > 0.0) {
    const Landing landing = ancestral(std::exp(-state.time), std::exp(-state.to), eta);
    land_at = std::min(end, -std::log(landing.down));
  }
  state.up = std::sqrt(std::max(0.0, std::exp(-2.0 * state.to) - std::exp(-2.0 * land_at)));
  const DpmSolverStep solver =
      dpm_solver_step(order, state.time, land_at, {own(0), own(1), own(2)});
  std::vector<Evaluation> evaluations;
  for (std::size_t k = 0; k < solver.points.size(); ++k)
    evaluations.push_back(inner(k, solver.levels[k], solver.points[k]));
  evaluations.back().start = solver.lower.seen_by(solver.points.size() - 1);
  return evaluations;
}

const Registered kDpmAdaptive(
    {.name = "dpm_adaptive",
     .place = 130,
     .step = nullptr,
     .flags = HEDDLE_SAMPLER_DRAWS_NOISE,
     .attempt = &dpm_adaptive,
     .options = {sampler_option("order", 2, 3), sampler_option("rtol", 0, 100),
                 sampler_option("atol", 0, 100), sampler_option("h_init", 0, 100),
                 sampler_option("pcoeff", 0, 100), sampler_option("icoeff", 0, 100),
                 sampler_option("dcoeff", 0, 100), sampler_option("accept_safety", 0, 100),
                 sampler_option("eta", 0, 100)}});

}  // namespace
}  // namespace heddle::samplers::steps
