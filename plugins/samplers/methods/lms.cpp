// Adams-Bashforth for uneven steps.
#include <algorithm>

#include "plugins/samplers/slope_weights.h"

namespace heddle::samplers::steps {
namespace {

// Simpson's rule, which is exact for cubics, in `parts` of [from, to]; divided by its length.
double mean_of(std::span<const double> nodes, std::size_t j, double from, double to, int parts) {
  const double part = (to - from) / parts;
  double total = 0.0;
  for (int k = 0; k < parts; ++k) {
    const double begin = parts == 1 ? from : from + k * part;
    const double end = parts == 1 ? to : from + (k + 1) * part;
    total += (lagrange(nodes, j, begin) + 4.0 * lagrange(nodes, j, 0.5 * (begin + end)) +
              lagrange(nodes, j, end)) /
             6.0;
  }
  return total / parts;
}

std::vector<Evaluation> lms(const Step& step) {
  constexpr std::size_t kCubic = 4;
  constexpr int kParts = 200;  // good to 1e-8 beyond cubics
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  const auto most =
      static_cast<std::size_t>(std::min(100.0, std::max(1.0, step.option("order", 4.0))));
  std::vector<double> nodes;
  for (std::size_t j = 0; j < std::min(step.i + 1, most); ++j) nodes.push_back(step.before(j));
  std::vector<double> weights;
  for (std::size_t j = 0; j < nodes.size(); ++j)
    weights.push_back(mean_of(nodes, j, step.sigma(), to, nodes.size() <= kCubic ? 1 : kParts));
  return slope_step(step, to - step.sigma(), weights);
}

const Registered kLms(
    {.name = "lms", .place = 110, .step = &lms, .options = {sampler_option("order", 1, 100)}});

}  // namespace
}  // namespace heddle::samplers::steps
