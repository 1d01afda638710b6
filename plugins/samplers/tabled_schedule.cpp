#include "tabled_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <stdexcept>
#include <string>

// A fused multiply-add would change last bits of the schedules from machine to machine.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

namespace heddle::samplers {
namespace {

constexpr int kMostSteps = 1000000;

constexpr std::array<std::string_view, 6> kModelTypes = {"SD1",  "SDXL", "SVD",
                                                         "FLUX", "Wan",  "Chroma"};

constexpr double kSd1[] = {14.6146412293, 6.4745760956, 3.8636745985, 2.6946151520,
                           1.8841921177,  1.3943805092, 0.9642583904, 0.6523686016,
                           0.3977456272,  0.1515232662, 0.0291671582};
constexpr double kSdxl[] = {14.6146412293, 6.3184485287, 3.7681790315, 2.1811480769,
                            1.3405244945,  0.8620721141, 0.5550693289, 0.3798540708,
                            0.2332364134,  0.1114188177, 0.0291671582};
constexpr double kSvd[] = {700,   54.5,  15.886, 7.977, 4.248, 1.789,
                           0.981, 0.403, 0.173,  0.034, 0.002};
constexpr double kFlux[] = {0.9968, 0.9886, 0.9819, 0.975,  0.966, 0.9471,
                            0.9158, 0.8287, 0.5512, 0.2808, 0.001};
constexpr double kWan[] = {1,     0.997, 0.995, 0.993, 0.991, 0.989, 0.987,
                           0.985, 0.98,  0.975, 0.973, 0.968, 0.96,  0.946,
                           0.927, 0.902, 0.864, 0.776, 0.539, 0.208, 0.001};
constexpr double kChroma[] = {0.992, 0.99,  0.988, 0.985, 0.982, 0.978, 0.973, 0.968, 0.961,
                              0.953, 0.943, 0.931, 0.917, 0.9,   0.881, 0.858, 0.832, 0.802,
                              0.769, 0.731, 0.69,  0.646, 0.599, 0.55,  0.501, 0.451, 0.402,
                              0.355, 0.311, 0.27,  0.232, 0.199, 0.169, 0.143, 0.12,  0.101,
                              0.084, 0.07,  0.058, 0.048, 0.001};

std::span<const double> levels_of(StepTable table) {
  switch (table) {
    case StepTable::kAlignSd1:
      return kSd1;
    case StepTable::kAlignSdxl:
      return kSdxl;
    case StepTable::kAlignSvd:
      return kSvd;
    case StepTable::kOptimalFlux:
      return kFlux;
    case StepTable::kOptimalWan:
      return kWan;
    case StepTable::kOptimalChroma:
      return kChroma;
  }
  return {};
}

// ln sigma at `position` (0 to 1) of the table.
double interpolate(std::span<const double> levels, double position) {
  const double place = position * static_cast<double>(levels.size() - 1);
  const std::size_t below = std::min(static_cast<std::size_t>(place), levels.size() - 2);
  const double weight = place - static_cast<double>(below);
  return (1.0 - weight) * std::log(levels[below]) + weight * std::log(levels[below + 1]);
}

}  // namespace

std::optional<StepTable> find_step_table(std::string_view model_type) {
  const auto found = std::find(kModelTypes.begin(), kModelTypes.end(), model_type);
  if (found == kModelTypes.end()) return std::nullopt;
  return static_cast<StepTable>(found - kModelTypes.begin());
}

Sigmas tabled_sigmas(StepTable table, int steps, double denoise) {
  if (steps < 1 || steps > kMostSteps) {
    throw std::invalid_argument(
        "schedule of " + std::string(kModelTypes[static_cast<std::size_t>(table)]) + ": " +
        std::to_string(steps) + " steps; give 1 to " + std::to_string(kMostSteps) + ".");
  }
  if (denoise <= 0.0) return {};
  const std::span<const double> levels = levels_of(table);
  const auto count = static_cast<std::size_t>(steps) + 1;
  // Half to even, as the reference rounds.
  const double part = denoise < 1.0 ? std::nearbyint(steps * denoise) : steps;
  Sigmas sigmas;
  for (std::size_t k = count - 1 - static_cast<std::size_t>(part); k < count; ++k) {
    const double position = static_cast<double>(k) / steps;
    sigmas.push_back(static_cast<float>(
        count == levels.size() ? levels[k] : std::exp(interpolate(levels, position))));
  }
  sigmas.back() = 0.0f;
  return sigmas;
}

}  // namespace heddle::samplers
