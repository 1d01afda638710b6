#include "slope_weights.h"

namespace heddle::samplers::steps {

std::vector<Evaluation> slope_step(const Step& step, double factor,
                                   std::span<const double> weights) {
  Expr x = start() + (factor * weights[0]) * slope(start(), own(0), step.sigma());
  for (std::size_t k = 1; k < weights.size(); ++k) {
    if (weights[k] != 0.0) x = x + (factor * weights[k]) * earlier_slope(k - 1);
  }
  return {last(0, step.sigma(), x)};
}

double lagrange(std::span<const double> nodes, std::size_t j, double t) {
  double product = 1.0;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (k != j) product *= (t - nodes[k]) / (nodes[j] - nodes[k]);
  }
  return product;
}

}  // namespace heddle::samplers::steps
