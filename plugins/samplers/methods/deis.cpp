#include <algorithm>
#include <array>

#include "plugins/samplers/slope_weights.h"

namespace heddle::samplers::steps {
namespace {

// Zhang & Chen 2022 (DEIS, tAB): the slopes' polynomial in the time of a variance-preserving
// process, fitted to levels 0.002 to 80, integrated by a sum of 10000 points.
std::vector<Evaluation> deis(const Step& step) {
  constexpr int kPoints = 10000;
  if (step.i == 0 || step.next() == 0.0) return euler_step(step);
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
  std::array<double, 3> weights{};
  for (int k = 0; k < kPoints; ++k) {
    const double t = from + (to - from) * k / (kPoints - 1);
    const double signal = std::exp(-0.5 * beta_d * t * t - beta_min * t);
    const double rate = 0.5 * (beta_d * t + beta_min) / std::sqrt(signal * (1.0 - signal));
    for (std::size_t j = 0; j < order; ++j) weights[j] += rate * lagrange(nodes, j, t);
  }
  return slope_step(step, (to - from) / kPoints, weights);
}

const Registered kDeis({.name = "deis", .place = 300, .step = &deis});

}  // namespace
}  // namespace heddle::samplers::steps
