#include "gits_schedule.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "gits_levels.h"

// A fused multiply-add would change last bits of the schedules from machine to machine.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

namespace heddle::samplers {
namespace {

constexpr int kMostGitsSteps = 1000000;

// A schedule of n steps has n - 1 levels between its ends.
constexpr int between_before(int steps) { return (steps - 1) * (steps - 2) / 2; }
constexpr int kGitsEach = between_before(kGitsMostSteps + 1);
static_assert(std::size(kGitsBetween) == std::size_t{kGitsCoefficients} * kGitsEach);

std::vector<double> gits_table(int coefficient, int steps) {
  std::vector<double> levels{kGitsLevels[0]};
  const std::uint8_t* const between =
      kGitsBetween + coefficient * kGitsEach + between_before(steps);
  for (int i = 0; i + 1 < steps; ++i) levels.push_back(kGitsLevels[between[i]]);
  levels.push_back(kGitsLevels[std::size(kGitsLevels) - 1]);
  return levels;
}

// Which table; -1: none.
int gits_coefficient(double coefficient) {
  const double hundredths = std::nearbyint(coefficient * 100) - 80;
  if (!(hundredths >= 0 && hundredths <= 5 * (kGitsCoefficients - 1))) return -1;
  const int whole = int(hundredths);
  return whole % 5 == 0 ? whole / 5 : -1;
}

}  // namespace

Sigmas gits_sigmas(double coefficient, int steps, double denoise) {
  const int number = gits_coefficient(coefficient);
  if (number < 0)
    throw std::invalid_argument("GITS: there are no levels for a coeff of " +
                                std::to_string(coefficient) +
                                "; give 0.80, 0.85, and so on up to 1.50.");
  if (steps < kGitsLeastSteps || steps > kMostGitsSteps)
    throw std::invalid_argument("GITS: " + std::to_string(steps) + " steps; give " +
                                std::to_string(kGitsLeastSteps) + " to " +
                                std::to_string(kMostGitsSteps) + ".");
  if (denoise <= 0.0) return {};
  const std::vector<double> levels = gits_table(number, std::min(steps, kGitsMostSteps));
  // Half to even, as the reference rounds.
  const auto part = int(denoise < 1.0 ? std::nearbyint(steps * denoise) : steps);
  Sigmas sigmas;
  for (int k = steps - part; k <= steps; ++k) {
    if (steps <= kGitsMostSteps) {
      sigmas.push_back(float(levels[std::size_t(k)]));
      continue;
    }
    const double place = double(k) / steps * kGitsMostSteps;
    const std::size_t below = std::min(std::size_t(place), levels.size() - 2);
    const double weight = place - double(below);
    sigmas.push_back(float(
        std::exp((1.0 - weight) * std::log(levels[below]) + weight * std::log(levels[below + 1]))));
  }
  sigmas.back() = 0.0f;
  return sigmas;
}

}  // namespace heddle::samplers
