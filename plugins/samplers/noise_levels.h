// The noise levels a model was trained on: its table of sigmas and the conversions between a noise
// level (sigma), the number a model is told (timestep) and the part of the way (percent). They are
// ComfyUI's, in single precision as there, because people's step counts and shifts mean these
// tables. `timestep` of the flow kinds is not the inverse of `sigma`: the schedules rely on it.
// An immutable value; any thread.
#pragma once

#include <span>
#include <vector>

namespace heddle::samplers {

// Betas of a diffusion trained in discrete steps: linear in their square roots from `first` to
// `last`. The default is that of SD 1, SD 2 and SDXL.
struct Betas {
  enum class Terminal { kAsTrained, kZeroSnr };

  double first = 0.00085;
  double last = 0.012;
  int steps = 1000;
  Terminal terminal =
      Terminal::kAsTrained;  // kZeroSnr rescales so that the last level is all noise
};

class NoiseLevels {
 public:
  // Throw std::invalid_argument on parameters that give no rising, finite table.

  static NoiseLevels discrete(const Betas& betas = {});
  // Every 20th level of `betas` (50 of 1000), as latent consistency models are distilled.
  // REQUIRES: betas.steps is 1000.
  static NoiseLevels distilled(const Betas& betas = {});
  // sigma = s t / (1 + (s - 1) t), 1000 levels; timestep = sigma * multiplier. SD3: shift 3,
  // multiplier 1000; AuraFlow, Lumina 2, Z-Image, FLUX schnell: multiplier 1; Wan: shift 8.
  static NoiseLevels discrete_flow(double shift, double multiplier);
  // sigma = e^mu / (e^mu + 1/t - 1), 10000 levels; timestep = sigma. FLUX dev, Qwen-Image: mu 1.15.
  static NoiseLevels flux(double mu);
  // 1000 levels spaced evenly in ln sigma; timestep = ln(sigma) / 4.
  static NoiseLevels continuous_edm(double sigma_min, double sigma_max);
  // The same levels; timestep = 2 atan(sigma) / pi.
  static NoiseLevels continuous_v(double sigma_min, double sigma_max);

  // Stable Cascade's 10000 levels of a squared cosine, whose ratios of signal to noise are divided
  // by shift^2; timestep = the time of that cosine, 0 to 1.
  static NoiseLevels cascade(double shift);

  // Never falling, never empty. (Strong shifts make neighbours equal in single precision.)
  std::span<const float> sigmas() const { return sigmas_; }
  float sigma_min() const { return sigmas_.front(); }
  float sigma_max() const { return sigmas_.back(); }

  // What the model is told for noise level `sigma`. REQUIRES: sigma >= 0.
  float timestep(float sigma) const;
  // The noise level of a timestep; between two of a table it is interpolated in ln sigma.
  float sigma(float timestep) const;
  // The noise level after `percent` (0 to 1) of the way from noise to picture. At or below 0 a
  // level above all others (1 for flows), at or above 1 it is 0.
  double percent_to_sigma(double percent) const;

 private:
  enum class Kind {
    kDiscrete,
    kDistilled,
    kDiscreteFlow,
    kFlux,
    kContinuousEdm,
    kContinuousV,
    kCascade
  };

  NoiseLevels(Kind kind, double shift, double multiplier)
      : kind_(kind), shift_(shift), multiplier_(multiplier) {}
  NoiseLevels(Kind kind, double sigma_min, double sigma_max, int levels);
  void check_table() const;
  float nearest_level(float sigma) const;
  float interpolate(float position) const;

  Kind kind_;
  double shift_ = 1.0;  // s of discrete_flow, mu of flux; of cascade
  double multiplier_ = 1.0;
  std::vector<float> sigmas_;
  std::vector<float> log_sigmas_;  // of the discrete kinds
};

// The value at `tokens` of the line through (from, base) and (to, max): how the shift grows with
// the size of a picture.
struct ShiftLine {
  double base = 0.5;
  double max = 1.15;
  double from = 256;
  double to = 4096;
};
double shift_at(const ShiftLine& line, double tokens);

// mu of ModelSamplingFlux for a picture of `width` x `height` pixels: one token is 16 x 16 pixels.
double flux_mu(int width, int height, double base_shift = 0.5, double max_shift = 1.15);

// What the LTXV nodes take a latent to have where none is linked.
inline constexpr double kLtxvTokens = 4096;
// mu of the LTXV nodes for a latent of `tokens` = frames * height * width positions.
double ltxv_mu(double tokens, double base_shift = 0.95, double max_shift = 2.05);

// A part of the way, both ends included.
struct SigmaRange {
  double start = 0.0, end = 0.0;
  bool holds(double sigma) const {
    return float(sigma) <= float(start) && float(sigma) >= float(end);
  }
};
SigmaRange range_between(const NoiseLevels& levels, double start_percent, double end_percent);

}  // namespace heddle::samplers
