#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

// Ho et al. 2020, on x scaled to unit variance.
std::vector<Evaluation> ddpm(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  const double kept = 1.0 / (from * from + 1.0);
  const double kept_next = 1.0 / (to * to + 1.0);
  const double ratio = kept / kept_next;
  const Expr noise_found = slope(start(), own(0), from);
  const Expr mean =
      std::sqrt(1.0 / ratio) *
      (std::sqrt(kept) * start() - ((1.0 - ratio) / std::sqrt(1.0 - kept)) * noise_found);
  if (to == 0.0) return {last(0, from, mean)};
  const double spread = std::sqrt((1.0 - ratio) * (1.0 - kept_next) / (1.0 - kept));
  const Expr noisy = mean + fresh_noise(spread * step.run.noise_factor);
  return {last(0, from, std::sqrt(1.0 + to * to) * noisy)};
}

const Registered kDdpm(
    {.name = "ddpm", .place = 260, .step = &ddpm, .flags = HEDDLE_SAMPLER_DRAWS_NOISE});

}  // namespace
}  // namespace heddle::samplers::steps
