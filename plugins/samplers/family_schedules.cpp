#include "family_schedules.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "linspace.h"

// A fused multiply-add would change last bits of the schedules from machine to machine.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

namespace heddle::samplers {
namespace {

void check_family_steps(const char* name, int steps) {
  constexpr int kMost = 1000000;
  if (steps >= 1 && steps <= kMost) return;
  throw std::invalid_argument(std::string(name) + ": " + std::to_string(steps) +
                              " steps; give 1 to " + std::to_string(kMost) + ".");
}

// mu over the number of tokens, by lines that were fitted at 10 and at 200 steps.
double flux2_mu(int steps, double tokens) {
  constexpr double kSlope10 = 8.73809524e-05, kBase10 = 1.89833333;
  constexpr double kSlope200 = 0.00016927, kBase200 = 0.45666666;
  constexpr double kManyTokens = 4300;
  const double at_200 = kSlope200 * tokens + kBase200;
  if (tokens > kManyTokens) return at_200;
  const double a_step = (at_200 - (kSlope10 * tokens + kBase10)) / 190.0;
  return a_step * steps + at_200 - 200.0 * a_step;
}

double sigmoid(double logit) { return 1.0 / (1.0 + std::exp(-logit)); }

}  // namespace

Sigmas flux2_sigmas(int steps, double pixels) {
  check_family_steps("Flux2Scheduler", steps);
  const double tokens = std::nearbyint(pixels / 256.0);  // half to even
  const auto e = static_cast<float>(std::exp(flux2_mu(steps, tokens)));
  Sigmas sigmas = linspace(1.0f, 0.0f, steps + 1);
  for (float& t : sigmas)
    if (t != 0.0f) t = 1.0f / (e + (1.0f / t - 1.0f)) * e;
  return sigmas;
}

Sigmas ideogram4_sigmas(int steps, double pixels, double mu, double deviation) {
  check_family_steps("Ideogram4Scheduler", steps);
  const double mean = mu + 0.5 * std::log(pixels / (512.0 * 512.0));
  const double least = sigmoid(-9.0), most = sigmoid(7.5);
  Sigmas sigmas;
  for (int k = steps; k >= 0; --k) {
    const double part = double(k) / steps;
    // The quantiles of 0 and 1 lie infinitely far out.
    const double cleared = k == 0       ? 1.0
                           : k == steps ? 0.0
                                        : 1.0 - sigmoid(mean + deviation * normal_quantile(part));
    sigmas.push_back(static_cast<float>(1.0 - std::clamp(cleared, least, most)));
  }
  sigmas.back() = 0.0f;
  return sigmas;
}

}  // namespace heddle::samplers
