// Noise schedules: which noise levels a run visits. A schedule is a list of sigmas from noisy to
// clean in single precision, usually ending in 0; a run of n steps has n + 1 of them. The formulas
// and the slicing rules are ComfyUI's. Pure functions; any thread. All throw std::invalid_argument,
// naming the value, on arguments outside of what they state.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "noise_levels.h"

namespace heddle::samplers {

using Sigmas = std::vector<float>;

// In the order of the list that people choose from.
enum class NoiseSchedule {
  kSimple,
  kSgmUniform,
  kKarras,
  kExponential,
  kDdimUniform,
  kBeta,
  kNormal,
  kLinearQuadratic,
  kKlOptimal,
};

// Names as workflows write them, index = enumerator.
std::span<const std::string_view> noise_schedule_names();
std::optional<NoiseSchedule> find_noise_schedule(std::string_view name);

// The schedule of `steps` (1 or more) steps over all levels. steps + 1 values, but: kDdimUniform
// strides over the table and may have more or fewer, kBeta drops repeated levels.
Sigmas make_sigmas(NoiseSchedule schedule, const NoiseLevels& levels, int steps);

// As BasicScheduler: for denoise < 1 the last steps + 1 values of a schedule of int(steps /
// denoise) steps; empty (the latent is returned as it is) for denoise <= 0.
Sigmas basic_sigmas(NoiseSchedule schedule, const NoiseLevels& levels, int steps, double denoise);

// How the KSampler nodes ask for a schedule.
struct SamplerSchedule {
  enum class Penultimate { kKeep, kDiscard };

  NoiseSchedule schedule = NoiseSchedule::kSimple;
  int steps = 20;
  double denoise = 1.0;  // above 0.9999 counts as 1
  // kDiscard for dpm_2, dpm_2_ancestral, uni_pc and uni_pc_bh2 (samplers.h tells): one step more is
  // asked for and the last level before the end dropped.
  Penultimate penultimate = Penultimate::kKeep;
};
Sigmas ksampler_sigmas(const SamplerSchedule& wanted, const NoiseLevels& levels);

// The same two for any schedule: `whole` gives that of a number of steps.
using WholeSchedule = std::function<Sigmas(int steps)>;
Sigmas basic_sigmas(const WholeSchedule& whole, int steps, double denoise);
Sigmas ksampler_sigmas(const WholeSchedule& whole, const SamplerSchedule& wanted);

// KSamplerAdvanced's part of a schedule: steps start (0 or more) to end of `sigmas`.
struct StepRange {
  enum class Leftover { kKeep, kRemove };

  int start = 0;
  int end = 10000;
  Leftover leftover = Leftover::kKeep;  // kRemove: an early end still goes down to 0
};
// Empty if `start` lies at or behind the last step: the latent is returned as it is.
Sigmas cut_sigmas(std::span<const float> sigmas, const StepRange& range);

// For samplers that divide by the signal-to-noise ratio (samplers.h tells which): in flows, a first
// level of 1 or more, where the ratio is 0, becomes percent_to_sigma(1e-4). The initial noise is
// still scaled with the level that was asked for.
Sigmas with_finite_first_level(std::span<const float> sigmas, const NoiseLevels& levels);

// The schedules of nodes of their own. `steps` is 1 or more; all end in 0 unless said.

Sigmas karras_sigmas(int steps, double sigma_min, double sigma_max, double rho = 7.0);
Sigmas exponential_sigmas(int steps, double sigma_min, double sigma_max);
Sigmas polyexponential_sigmas(int steps, double sigma_min, double sigma_max, double rho = 1.0);
Sigmas beta_sigmas(const NoiseLevels& levels, int steps, double alpha = 0.6, double beta = 0.6);
Sigmas kl_optimal_sigmas(int steps, double sigma_min, double sigma_max);
Sigmas linear_quadratic_sigmas(int steps, double sigma_max);
// sqrt(expm1(beta_d t^2 / 2 + beta_min t)) for t from 1 to `epsilon`.
Sigmas vp_sigmas(int steps, double beta_d = 19.9, double beta_min = 0.1, double epsilon = 1e-3);
// Quantiles of a Laplace distribution of ln sigma around `mu`, cut to the range. No 0 at the end.
Sigmas laplace_sigmas(int steps, double sigma_min, double sigma_max, double mu = 0.0,
                      double beta = 0.5);

// Timesteps 999, 899 ... 99: the first 10 - int(10 denoise) are skipped and `steps` taken.
Sigmas turbo_sigmas(const NoiseLevels& levels, int steps, double denoise = 1.0);

// LTXV: evenly spaced times, shifted by ltxv_mu, then stretched so that the last before 0 is
// `terminal` (none: not stretched).
Sigmas ltxv_sigmas(int steps, double mu, std::optional<double> terminal = 0.1);

// The number that this `part` of a standard normal distribution lies below. REQUIRES: 0 < part < 1.
double normal_quantile(double part);

}  // namespace heddle::samplers
