#include <algorithm>
#include <array>

#include "plugins/samplers/slope_weights.h"

namespace heddle::samplers::steps {
namespace {

using AdamsWeights = std::array<double, 4>;

// Adams-Bashforth for even steps (Liu et al. 2022; Zhang et al. 2023).
std::vector<Evaluation> ipndm(const Step& step) {
  static constexpr std::array<AdamsWeights, 4> kWeights = {
      {{1.0},
       {3.0 / 2, -1.0 / 2},
       {23.0 / 12, -16.0 / 12, 5.0 / 12},
       {55.0 / 24, -59.0 / 24, 37.0 / 24, -9.0 / 24}}};
  if (step.next() == 0.0) return to_denoised(step);
  return slope_step(step, step.next() - step.sigma(), kWeights[std::min<std::size_t>(step.i, 3)]);
}

// The same with weights for uneven steps as ComfyUI has them: those of orders 3 and 4 are not the
// textbook's, and pictures depend on it.
std::vector<Evaluation> ipndm_v(const Step& step) {
  if (step.next() == 0.0) return to_denoised(step);
  const double h = step.next() - step.sigma();
  AdamsWeights weights = {1.0};
  if (step.i == 0) return slope_step(step, h, weights);
  const double h1 = step.sigma() - step.before(1);
  weights = {1.0 + h / (2.0 * h1), -h / (2.0 * h1)};
  if (step.i == 1) return slope_step(step, h, weights);
  const double h2 = step.before(1) - step.before(2);
  const double third = 0.5 * (1.0 - h / (3.0 * (h + h1)) * (h * (h + h1)) / (h1 * (h1 + h2)));
  weights[0] += third;
  weights[1] -= (1.0 + h1 / h2) * third;
  weights[2] += third * h1 / h2;
  if (step.i == 2) return slope_step(step, h, weights);
  const double h3 = step.before(2) - step.before(3);
  const double bracket =
      0.5 * (1.0 - h / (3.0 * (h + h1))) + (1.0 - h / (2.0 * (h + h1))) * h / (6.0 * (h + h1 + h2));
  const double fourth = bracket * h * (h + h1) * (h + h1 + h2) / (h1 * (h1 + h2) * (h1 + h2 + h3));
  const double k = h1 * (h1 + h2) / (h2 * (h2 + h3));
  weights[0] += fourth;
  weights[1] -= (1.0 + h1 / h2 + k) * fourth;
  weights[2] += (h1 / h2 + k * (1.0 + h2 / h3)) * fourth;
  weights[3] -= k * (h1 / h2) * fourth;
  return slope_step(step, h, weights);
}

const Registered kIpndm({.name = "ipndm", .place = 280, .step = &ipndm});
const Registered kIpndmV({.name = "ipndm_v", .place = 290, .step = &ipndm_v});

}  // namespace
}  // namespace heddle::samplers::steps
