#include "prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

namespace heddle::samplers {
namespace {

constexpr std::array<std::string_view, 8> kPredictionNames = {
    "eps", "v_prediction", "edm", "x0", "img_to_img", "lcm", "const", "img_to_img_velocity"};
constexpr double kEdmSigmaData = 0.5;
constexpr double kLcmSigmaData = 0.5;
constexpr double kLcmTimestepScale = 10.0;

// As Python's math.isclose: relative to the larger of the two.
bool is_close(double a, double b, double relative) {
  return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b));
}

}  // namespace

std::optional<Prediction> find_prediction(std::string_view name) {
  const auto found = std::find(kPredictionNames.begin(), kPredictionNames.end(), name);
  if (found == kPredictionNames.end()) return std::nullopt;
  return static_cast<Prediction>(found - kPredictionNames.begin());
}

ModelTerms model_terms(Prediction prediction, double sigma, double timestep) {
  const double variance = sigma * sigma + 1.0;
  const double scaled = 1.0 / std::sqrt(variance);
  switch (prediction) {
    case Prediction::kEps:
      return {scaled, 1.0, -sigma};
    case Prediction::kV:
      return {scaled, 1.0 / variance, -sigma * scaled};
    case Prediction::kEdm: {
      constexpr double kData = kEdmSigmaData;
      const double total = sigma * sigma + kData * kData;
      return {1.0 / std::sqrt(total), kData * kData / total, sigma * kData / std::sqrt(total)};
    }
    case Prediction::kX0:
      return {scaled, 0.0, 1.0};
    case Prediction::kImgToImg:
      return {1.0, 0.0, 1.0};
    case Prediction::kLcm: {
      constexpr double kData = kLcmSigmaData;
      const double t = kLcmTimestepScale * timestep;
      const double total = t * t + kData * kData;
      const double clean = t / std::sqrt(total);
      return {scaled, clean + kData * kData / total, -clean * sigma};
    }
    case Prediction::kFlow:
      return {1.0, 1.0, -sigma};
    case Prediction::kImgToImgVelocity:
      return {1.0, 1.0, -1.0};
  }
  return {};
}

NoiseScaling noise_scaling(Prediction prediction, double sigma, double sigma_max) {
  if (prediction == Prediction::kFlow) return {sigma, 1.0 - sigma};
  const bool from_the_top = sigma > sigma_max || is_close(sigma, sigma_max, 1e-5);
  return {from_the_top ? std::sqrt(1.0 + sigma * sigma) : sigma, 1.0};
}

double inverse_noise_scaling(Prediction prediction, double sigma) {
  if (prediction != Prediction::kFlow) return 1.0;
  if (sigma >= 1.0) {
    throw std::invalid_argument("inverse_noise_scaling: the run ends at sigma " +
                                std::to_string(sigma) +
                                ", where a flow is all noise. End it below 1.");
  }
  return 1.0 / (1.0 - sigma);
}

Guidance guidance(double scale) {
  if (is_close(scale, 1.0, 1e-9)) return {};
  return {scale, 1.0 - scale};
}

}  // namespace heddle::samplers
