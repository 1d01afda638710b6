// Samplers that remember the slopes dx / dsigma of earlier steps: linear multistep methods.
#include <algorithm>
#include <cstddef>

#include "sampler_steps.h"

namespace heddle::samplers::steps {
namespace {

Expr slope_here(const Step& step) { return (1.0 / step.sigma()) * (start() - own(0)); }

// Weights of the slope of this step (0), of the one before (1) ...
using Weights = std::array<double, 4>;

// x + factor * sum of weighted slopes.
std::vector<Evaluation> weighted(const Step& step, double factor, const Weights& weights) {
  Expr x = start() + (factor * weights[0]) * slope_here(step);
  for (std::size_t k = 1; k < weights.size(); ++k) {
    x = x + (factor * weights[k]) * earlier_slope(k - 1);
  }
  return {last(0, step.sigma(), x)};
}

// The polynomial that is 1 at nodes[j] and 0 at the others, at `t`.
double lagrange(std::span<const double> nodes, std::size_t j, double t) {
  double product = 1.0;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (k != j) product *= (t - nodes[k]) / (nodes[j] - nodes[k]);
  }
  return product;
}

}  // namespace

// Adams-Bashforth for uneven steps, order 4. Simpson's rule is exact for the cubics.
std::vector<Evaluation> lms(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  std::array<double, 4> levels{};
  const std::size_t order = std::min<std::size_t>(step.i + 1, levels.size());
  for (std::size_t j = 0; j < order; ++j) levels[j] = step.before(j);
  const std::span<const double> nodes(levels.data(), order);
  Weights weights{};
  for (std::size_t j = 0; j < order; ++j) {
    weights[j] = (lagrange(nodes, j, from) + 4.0 * lagrange(nodes, j, 0.5 * (from + to)) +
                  lagrange(nodes, j, to)) /
                 6.0;
  }
  return weighted(step, to - from, weights);
}

// Adams-Bashforth for even steps (Liu et al. 2022; Zhang et al. 2023).
std::vector<Evaluation> ipndm(const Step& step) {
  static constexpr std::array<Weights, 4> kWeights = {
      {{1.0},
       {3.0 / 2, -1.0 / 2},
       {23.0 / 12, -16.0 / 12, 5.0 / 12},
       {55.0 / 24, -59.0 / 24, 37.0 / 24, -9.0 / 24}}};
  if (step.next() == 0.0) return to_denoised(step);
  return weighted(step, step.next() - step.sigma(), kWeights[std::min<std::size_t>(step.i, 3)]);
}

// The same with weights for uneven steps as ComfyUI has them: those of orders 3 and 4 are not the
// textbook's, and pictures depend on it.
std::vector<Evaluation> ipndm_v(const Step& step) {
  if (step.next() == 0.0) return to_denoised(step);
  const double h = step.next() - step.sigma();
  Weights weights = {1.0};
  if (step.i == 0) return weighted(step, h, weights);
  const double h1 = step.sigma() - step.before(1);
  weights = {1.0 + h / (2.0 * h1), -h / (2.0 * h1)};
  if (step.i == 1) return weighted(step, h, weights);
  const double h2 = step.before(1) - step.before(2);
  const double third = 0.5 * (1.0 - h / (3.0 * (h + h1)) * (h * (h + h1)) / (h1 * (h1 + h2)));
  weights[0] += third;
  weights[1] -= (1.0 + h1 / h2) * third;
  weights[2] += third * h1 / h2;
  if (step.i == 2) return weighted(step, h, weights);
  const double h3 = step.before(2) - step.before(3);
  const double bracket =
      0.5 * (1.0 - h / (3.0 * (h + h1))) + (1.0 - h / (2.0 * (h + h1))) * h / (6.0 * (h + h1 + h2));
  const double fourth = bracket * h * (h + h1) * (h + h1 + h2) / (h1 * (h1 + h2) * (h1 + h2 + h3));
  const double k = h1 * (h1 + h2) / (h2 * (h2 + h3));
  weights[0] += fourth;
  weights[1] -= (1.0 + h1 / h2 + k) * fourth;
  weights[2] += (h1 / h2 + k * (1.0 + h2 / h3)) * fourth;
  weights[3] -= k * (h1 / h2) * fourth;
  return weighted(step, h, weights);
}

// Zhang & Chen 2022 (DEIS, tAB): the slopes' polynomial in the time of a variance-preserving
// process, fitted to levels 0.002 to 80, integrated by a sum of 10000 points.
std::vector<Evaluation> deis(const Step& step) {
  constexpr int kPoints = 10000;
  if (step.i == 0 || step.next() == 0.0) return euler(step);
  const double top = std::log(80.0 * 80.0 + 1.0);
  const double beta_d = 2.0 * (std::log(0.002 * 0.002 + 1.0) / 1e-3 - top) / (1e-3 - 1.0);
  const double beta_min = top - 0.5 * beta_d;
  const auto time = [=](double sigma) {
    const double log_variance = std::log(sigma * sigma + 1.0);
    return (std::sqrt(beta_min * beta_min + 2.0 * beta_d * log_variance) - beta_min) / beta_d;
  };
  std::array<double, 3> times{};
  const std::size_t order = std::min<std::size_t>(step.i + 1, times.size());
  for (std::size_t j = 0; j < order; ++j) times[j] = time(step.before(j));
  const std::span<const double> nodes(times.data(), order);
  const double from = times[0];
  const double to = time(step.next());
  Weights weights{};
  for (int k = 0; k < kPoints; ++k) {
    const double t = from + (to - from) * k / (kPoints - 1);
    const double signal = std::exp(-0.5 * beta_d * t * t - beta_min * t);
    const double rate = 0.5 * (beta_d * t + beta_min) / std::sqrt(signal * (1.0 - signal));
    for (std::size_t j = 0; j < order; ++j) weights[j] += rate * lagrange(nodes, j, t);
  }
  return weighted(step, (to - from) / kPoints, weights);
}

// Permenter & Yuan 2023: Euler, with the change of the slope carried on.
std::vector<Evaluation> gradient_estimation(const Step& step) {
  constexpr double kGamma = 2.0;
  if (step.next() == 0.0) return to_denoised(step);
  if (step.i == 0) return euler(step);
  return weighted(step, step.next() - step.sigma(), {kGamma, 1.0 - kGamma});
}

}  // namespace heddle::samplers::steps
