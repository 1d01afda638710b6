#include "dpm_solver.h"

namespace heddle::samplers::steps {
namespace {

double level_of(double time) { return std::exp(-time); }

// x - level(to) expm1(to - from) noise.
Expr first_order(double from, double to, const Expr& noise) {
  return start() - (level_of(to) * std::expm1(to - from)) * noise;
}

}  // namespace

DpmSolverStep dpm_solver_step(int order, double from, double to,
                              const std::vector<Expr>& denoised) {
  const double h = to - from;
  DpmSolverStep step{.levels = {level_of(from)}, .points = {}, .lower = {}};
  const Expr noise = slope(start(), denoised[0], level_of(from));
  const Expr plain = first_order(from, to, noise);
  if (order == 1) {
    step.points = {plain};
    return step;
  }
  const double r1 = order == 2 ? 0.5 : 1.0 / 3.0;
  const double time1 = from + r1 * h;
  const Expr point1 = first_order(from, time1, noise);
  const Expr change1 = slope(point1, denoised[1], level_of(time1)) - noise;
  const Expr second = plain - (level_of(to) / (2.0 * r1) * std::expm1(h)) * change1;
  step.levels.push_back(level_of(time1));
  if (order == 2) {
    step.points = {point1, second};
    step.lower = plain;
    return step;
  }
  const double r2 = 2.0 / 3.0;
  const double time2 = from + r2 * h;
  const double h2 = r2 * h;
  const Expr point2 = first_order(from, time2, noise) -
                      (level_of(time2) * (r2 / r1) * (std::expm1(h2) / h2 - 1.0)) * change1;
  const Expr change2 = slope(point2, denoised[2], level_of(time2)) - noise;
  step.levels.push_back(level_of(time2));
  step.points = {point1, point2, plain - (level_of(to) / r2 * (std::expm1(h) / h - 1.0)) * change2};
  step.lower = second;
  return step;
}

double dpm_solver_end(const Step& step) {
  const auto sigmas = step.sigmas();
  const float end = sigmas.back() == 0.0f ? sigmas[sigmas.size() - 2] : sigmas.back();
  return -std::log(double(end));
}

}  // namespace heddle::samplers::steps
