#include "noise_levels.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

#include "linspace.h"

// A fused multiply-add would change last bits of the tables from machine to machine.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

namespace heddle::samplers {
namespace {

constexpr int kFlowLevels = 1000;
constexpr int kFluxLevels = 10000;
constexpr int kContinuousLevels = 1000;
constexpr int kCascadeLevels = 10000;
constexpr int kDistilledStride = 20;
// What percent_to_sigma answers before the start, where a level above every table is meant.
constexpr double kAboveAll = 999999999.9;
// The cumulated alpha that zero terminal SNR puts in the place of 0.
constexpr double kTerminalAlpha = 4.8973451890853435e-08;

// Square roots of the cumulated alphas moved so that the last is 0, the first as before
// ("Common Diffusion Noise Schedules and Sample Steps are Flawed", Lin et al. 2023, algorithm 1).
void rescale_to_zero_snr(std::vector<double>& cumulated) {
  const double first = std::sqrt(cumulated.front());
  const double last = std::sqrt(cumulated.back());
  for (double& alpha : cumulated) {
    const double moved = (std::sqrt(alpha) - last) * (first / (first - last));
    alpha = moved * moved;
  }
  cumulated.back() = kTerminalAlpha;
}

std::vector<double> discrete_sigmas(const Betas& betas) {
  if (!(betas.first > 0 && betas.last >= betas.first && betas.last < 1 && betas.steps > 1)) {
    throw std::invalid_argument("NoiseLevels: betas from " + std::to_string(betas.first) + " to " +
                                std::to_string(betas.last) + " in " + std::to_string(betas.steps) +
                                " steps; give 0 < first <= last < 1 and at least 2 steps.");
  }
  const double first = std::sqrt(betas.first);
  const double last = std::sqrt(betas.last);
  const double step = (last - first) / (betas.steps - 1);
  std::vector<double> cumulated;
  double product = 1.0;
  for (int k = 0; k < betas.steps; ++k) {
    const double root =
        k < betas.steps / 2 ? first + step * k : last - step * (betas.steps - 1 - k);
    product *= 1.0 - root * root;
    cumulated.push_back(product);
  }
  if (betas.terminal == Betas::Terminal::kZeroSnr) rescale_to_zero_snr(cumulated);
  for (double& alpha : cumulated) alpha = std::sqrt((1.0 - alpha) / alpha);
  return cumulated;
}

// sigma(t) = e^mu / (e^mu + 1/t - 1), as reciprocals and products: the order of the reference.
float flux_sigma(double mu, float t) {
  const auto e = static_cast<float>(std::exp(mu));
  return 1.0f / (e + (1.0f / t - 1.0f)) * e;
}

float flow_sigma(double shift, float t) {
  if (shift == 1.0) return t;
  return static_cast<float>(shift) * t / (1.0f + static_cast<float>(shift - 1.0) * t);
}

// The level at a time of Stable Cascade's cosine, and the time of a level, in single precision as
// the reference has them.
constexpr float kCosineOffset = 8e-3f;
float cascade_angle(float time) {
  return (time + kCosineOffset) / (1.0f + kCosineOffset) * std::numbers::pi_v<float> * 0.5f;
}
float cascade_first() {
  const float root = std::cos(cascade_angle(0.0f));
  return root * root;
}
float cascade_sigma(double shift, float time) {
  const float root = std::cos(cascade_angle(time));
  float alpha = root * root / cascade_first();
  if (shift != 1.0) {
    const float ratio =
        std::log(alpha / (1.0f - alpha)) + 2.0f * std::log(1.0f / static_cast<float>(shift));
    alpha = 1.0f / (1.0f + std::exp(-ratio));
  }
  alpha = std::clamp(alpha, 0.0001f, 0.9999f);
  return std::sqrt((1.0f - alpha) / alpha);
}
float cascade_time(float sigma) {
  const float alpha = std::clamp(1.0f / (sigma * sigma + 1.0f), 0.0f, 1.0f);
  const float angle = std::acos(std::sqrt(alpha * cascade_first()));
  return angle / (std::numbers::pi_v<float> * 0.5f) * (1.0f + kCosineOffset) - kCosineOffset;
}

}  // namespace

NoiseLevels NoiseLevels::discrete(const Betas& betas) {
  NoiseLevels levels(Kind::kDiscrete, 1.0, 1.0);
  for (const double sigma : discrete_sigmas(betas)) {
    levels.sigmas_.push_back(static_cast<float>(sigma));
    levels.log_sigmas_.push_back(static_cast<float>(std::log(sigma)));
  }
  levels.check_table();
  return levels;
}

NoiseLevels NoiseLevels::distilled(const Betas& betas) {
  if (betas.steps != 1000) {
    throw std::invalid_argument("NoiseLevels::distilled: a table of " +
                                std::to_string(betas.steps) + " steps; it takes one of 1000.");
  }
  NoiseLevels levels(Kind::kDistilled, 1.0, 1.0);
  const std::vector<double> all = discrete_sigmas(betas);
  for (std::size_t k = kDistilledStride - 1; k < all.size(); k += kDistilledStride) {
    levels.sigmas_.push_back(static_cast<float>(all[k]));
    levels.log_sigmas_.push_back(std::log(levels.sigmas_.back()));
  }
  levels.check_table();
  return levels;
}

NoiseLevels NoiseLevels::discrete_flow(double shift, double multiplier) {
  NoiseLevels levels(Kind::kDiscreteFlow, shift, multiplier);
  for (int k = 1; k <= kFlowLevels; ++k) {
    const float t = static_cast<float>(k) / static_cast<float>(kFlowLevels);
    levels.sigmas_.push_back(levels.sigma(t * static_cast<float>(multiplier)));
  }
  levels.check_table();
  return levels;
}

NoiseLevels NoiseLevels::flux(double mu) {
  NoiseLevels levels(Kind::kFlux, mu, 1.0);
  for (int k = 1; k <= kFluxLevels; ++k) {
    levels.sigmas_.push_back(flux_sigma(mu, static_cast<float>(k) / kFluxLevels));
  }
  levels.check_table();
  return levels;
}

NoiseLevels::NoiseLevels(Kind kind, double sigma_min, double sigma_max, int levels) : kind_(kind) {
  sigmas_ = linspace(static_cast<float>(std::log(sigma_min)),
                     static_cast<float>(std::log(sigma_max)), levels);
  for (float& value : sigmas_) value = std::exp(value);
  check_table();
}

NoiseLevels NoiseLevels::continuous_edm(double sigma_min, double sigma_max) {
  return {Kind::kContinuousEdm, sigma_min, sigma_max, kContinuousLevels};
}

NoiseLevels NoiseLevels::continuous_v(double sigma_min, double sigma_max) {
  return {Kind::kContinuousV, sigma_min, sigma_max, kContinuousLevels};
}

NoiseLevels NoiseLevels::cascade(double shift) {
  NoiseLevels levels(Kind::kCascade, shift, 1.0);
  for (int k = 1; k <= kCascadeLevels; ++k)
    levels.sigmas_.push_back(levels.sigma(static_cast<float>(double(k) / kCascadeLevels)));
  levels.check_table();
  return levels;
}

void NoiseLevels::check_table() const {
  const auto falls = [](float a, float b) { return !(a <= b); };
  const bool rises = std::adjacent_find(sigmas_.begin(), sigmas_.end(), falls) == sigmas_.end();
  if (rises && sigmas_.front() > 0 && std::isfinite(sigmas_.back())) return;
  throw std::invalid_argument(
      "NoiseLevels: the table runs from " + std::to_string(sigmas_.front()) + " to " +
      std::to_string(sigmas_.back()) + " (shift " + std::to_string(shift_) + ", multiplier " +
      std::to_string(multiplier_) +
      ") and is not a rise from above 0 to a finite level. Give a positive shift and multiplier, "
      "and 0 < sigma_min < sigma_max.");
}

// Index of the level nearest in ln sigma, the lower of two.
float NoiseLevels::nearest_level(float sigma) const {
  const float wanted = std::log(sigma);
  const auto nearer = [wanted](float a, float b) {
    return std::abs(wanted - a) < std::abs(wanted - b);
  };
  const auto found = std::min_element(log_sigmas_.begin(), log_sigmas_.end(), nearer);
  return static_cast<float>(found - log_sigmas_.begin());
}

float NoiseLevels::interpolate(float position) const {
  const float t = std::clamp(position, 0.0f, static_cast<float>(log_sigmas_.size() - 1));
  const float low = std::floor(t);
  const float weight = t - low;
  const float below = log_sigmas_[static_cast<std::size_t>(low)];
  const float above = log_sigmas_[static_cast<std::size_t>(std::ceil(t))];
  return std::exp((1.0f - weight) * below + weight * above);
}

float NoiseLevels::timestep(float sigma) const {
  switch (kind_) {
    case Kind::kDiscrete:
      return nearest_level(sigma);
    case Kind::kDistilled:
      return nearest_level(sigma) * kDistilledStride + (kDistilledStride - 1);
    case Kind::kDiscreteFlow:
      return sigma * static_cast<float>(multiplier_);
    case Kind::kFlux:
      return sigma;
    case Kind::kContinuousEdm:
      return 0.25f * std::log(sigma);
    case Kind::kContinuousV:
      return std::atan(sigma) / std::numbers::pi_v<float> * 2.0f;
    case Kind::kCascade:
      return cascade_time(sigma);
  }
  return sigma;
}

float NoiseLevels::sigma(float timestep) const {
  switch (kind_) {
    case Kind::kDiscrete:
      return interpolate(timestep);
    case Kind::kDistilled:
      return interpolate((timestep - (kDistilledStride - 1)) / kDistilledStride);
    case Kind::kDiscreteFlow:
      return flow_sigma(shift_, timestep / static_cast<float>(multiplier_));
    case Kind::kFlux:
      return flux_sigma(shift_, timestep);
    case Kind::kContinuousEdm:
      return std::exp(timestep / 0.25f);
    case Kind::kContinuousV:
      return std::tan(timestep * std::numbers::pi_v<float> / 2.0f);
    case Kind::kCascade:
      return cascade_sigma(shift_, timestep);
  }
  return timestep;
}

double NoiseLevels::percent_to_sigma(double percent) const {
  const bool flow = kind_ == Kind::kDiscreteFlow || kind_ == Kind::kFlux;
  if (percent <= 0.0) return flow ? 1.0 : kAboveAll;
  if (percent >= 1.0) return 0.0;
  const double left = 1.0 - percent;
  switch (kind_) {
    case Kind::kDiscrete:
    case Kind::kDistilled:
      return sigma(static_cast<float>(left * 999.0));
    case Kind::kCascade:
      return sigma(static_cast<float>(left));
    case Kind::kDiscreteFlow:
      return shift_ == 1.0 ? left : shift_ * left / (1.0 + (shift_ - 1.0) * left);
    case Kind::kFlux:
      return std::exp(shift_) / (std::exp(shift_) + (1.0 / left - 1.0));
    case Kind::kContinuousEdm:
    case Kind::kContinuousV: {
      const double lowest = std::log(static_cast<double>(sigma_min()));
      return std::exp((std::log(static_cast<double>(sigma_max())) - lowest) * left + lowest);
    }
  }
  return 0.0;
}

double shift_at(const ShiftLine& line, double tokens) {
  const double slope = (line.max - line.base) / (line.to - line.from);
  return tokens * slope + (line.base - slope * line.from);
}

double flux_mu(int width, int height, double base_shift, double max_shift) {
  const double tokens = static_cast<double>(width) * height / 256.0;
  return shift_at({.base = base_shift, .max = max_shift, .from = 256, .to = 4096}, tokens);
}

double ltxv_mu(double tokens, double base_shift, double max_shift) {
  return shift_at({.base = base_shift, .max = max_shift, .from = 1024, .to = 4096}, tokens);
}

SigmaRange range_between(const NoiseLevels& levels, double start_percent, double end_percent) {
  return {levels.percent_to_sigma(start_percent), levels.percent_to_sigma(end_percent)};
}

}  // namespace heddle::samplers
