#include "noise_schedule.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/normal.hpp>
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

constexpr std::array<std::string_view, 9> kNames = {
    "simple", "sgm_uniform", "karras",           "exponential", "ddim_uniform",
    "beta",   "normal",      "linear_quadratic", "kl_optimal"};

// Below this a level counts as 0, so that no zero has to be appended.
constexpr double kNoNoise = 1e-5;
// Longer schedules than any run has, refused before they take memory.
constexpr int kMostSteps = 1000000;

void require_steps(std::string_view name, int steps) {
  if (steps >= 1 && steps <= kMostSteps) return;
  throw std::invalid_argument(std::string(name) + ": " + std::to_string(steps) +
                              " steps; give 1 to " + std::to_string(kMostSteps) + ".");
}

void require_range(std::string_view name, double sigma_min, double sigma_max) {
  if (sigma_min > 0 && sigma_max >= sigma_min && std::isfinite(sigma_max)) return;
  throw std::invalid_argument(std::string(name) + ": sigma_min " + std::to_string(sigma_min) +
                              ", sigma_max " + std::to_string(sigma_max) +
                              "; give 0 < sigma_min <= sigma_max.");
}

// The last `count` values, or all.
Sigmas last_of(const Sigmas& sigmas, std::size_t count) {
  const auto kept = static_cast<std::ptrdiff_t>(std::min(count, sigmas.size()));
  return {sigmas.end() - kept, sigmas.end()};
}

// int(steps / denoise): so many steps that the last `steps` of them are the part `denoise`.
int stretched_steps(std::string_view name, int steps, double denoise) {
  const double stretched = steps / denoise;
  if (stretched >= 1 && stretched <= kMostSteps) return static_cast<int>(stretched);  // not NaN
  throw std::invalid_argument(std::string(name) + ": " + std::to_string(steps) +
                              " steps at a denoise of " + std::to_string(denoise) +
                              " are a part of more than " + std::to_string(kMostSteps) +
                              " steps; give a greater denoise.");
}

// Evenly spaced steps through the table. The product k * (N / n) is rounded as written, in double:
// 38 steps put the half at entry 499, not 500.
Sigmas simple_sigmas(const NoiseLevels& levels, int steps) {
  const std::span<const float> table = levels.sigmas();
  const double stride = static_cast<double>(table.size()) / steps;
  Sigmas sigmas;
  for (int k = 0; k < steps; ++k) {
    sigmas.push_back(table[table.size() - 1 - static_cast<std::size_t>(k * stride)]);
  }
  sigmas.push_back(0.0f);
  return sigmas;
}

Sigmas at_timesteps(const NoiseLevels& levels, std::span<const float> timesteps) {
  Sigmas sigmas;
  for (const float timestep : timesteps) sigmas.push_back(levels.sigma(timestep));
  return sigmas;
}

Sigmas normal_sigmas(const NoiseLevels& levels, int steps) {
  const float first = levels.timestep(levels.sigma_max());
  const float last = levels.timestep(levels.sigma_min());
  if (std::abs(levels.sigma(last)) <= kNoNoise) {
    return at_timesteps(levels, linspace(first, last, steps + 1));
  }
  Sigmas sigmas = at_timesteps(levels, linspace(first, last, steps));
  sigmas.push_back(0.0f);
  return sigmas;
}

Sigmas sgm_uniform_sigmas(const NoiseLevels& levels, int steps) {
  std::vector<float> timesteps =
      linspace(levels.timestep(levels.sigma_max()), levels.timestep(levels.sigma_min()), steps + 1);
  timesteps.pop_back();
  Sigmas sigmas = at_timesteps(levels, timesteps);
  sigmas.push_back(0.0f);
  return sigmas;
}

Sigmas ddim_uniform_sigmas(const NoiseLevels& levels, int steps) {
  const std::span<const float> table = levels.sigmas();
  const bool ends_clean = std::abs(table[1]) <= kNoNoise;
  const auto divisor = static_cast<std::size_t>(ends_clean ? steps + 1 : steps);
  const std::size_t stride = std::max<std::size_t>(table.size() / divisor, 1);
  Sigmas sigmas;
  if (!ends_clean) sigmas.push_back(0.0f);
  for (std::size_t k = 1; k < table.size(); k += stride) sigmas.push_back(table[k]);
  std::reverse(sigmas.begin(), sigmas.end());
  return sigmas;
}

}  // namespace

std::span<const std::string_view> noise_schedule_names() { return kNames; }

std::optional<NoiseSchedule> find_noise_schedule(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<NoiseSchedule>(found - kNames.begin());
}

Sigmas make_sigmas(NoiseSchedule schedule, const NoiseLevels& levels, int steps) {
  require_steps(kNames[static_cast<std::size_t>(schedule)], steps);
  const double low = levels.sigma_min();
  const double high = levels.sigma_max();
  switch (schedule) {
    case NoiseSchedule::kSimple:
      return simple_sigmas(levels, steps);
    case NoiseSchedule::kSgmUniform:
      return sgm_uniform_sigmas(levels, steps);
    case NoiseSchedule::kKarras:
      return karras_sigmas(steps, low, high);
    case NoiseSchedule::kExponential:
      return exponential_sigmas(steps, low, high);
    case NoiseSchedule::kDdimUniform:
      return ddim_uniform_sigmas(levels, steps);
    case NoiseSchedule::kBeta:
      return beta_sigmas(levels, steps);
    case NoiseSchedule::kNormal:
      return normal_sigmas(levels, steps);
    case NoiseSchedule::kLinearQuadratic:
      return linear_quadratic_sigmas(steps, high);
    case NoiseSchedule::kKlOptimal:
      return kl_optimal_sigmas(steps, low, high);
  }
  return {};
}

Sigmas basic_sigmas(NoiseSchedule schedule, const NoiseLevels& levels, int steps, double denoise) {
  return basic_sigmas([&](int total) { return make_sigmas(schedule, levels, total); }, steps,
                      denoise);
}

Sigmas basic_sigmas(const WholeSchedule& whole, int steps, double denoise) {
  require_steps("BasicScheduler", steps);
  if (denoise <= 0.0) return {};
  const int total = denoise < 1.0 ? stretched_steps("BasicScheduler", steps, denoise) : steps;
  return last_of(whole(total), static_cast<std::size_t>(steps) + 1);
}

Sigmas ksampler_sigmas(const SamplerSchedule& wanted, const NoiseLevels& levels) {
  return ksampler_sigmas([&](int steps) { return make_sigmas(wanted.schedule, levels, steps); },
                         wanted);
}

Sigmas ksampler_sigmas(const WholeSchedule& schedule, const SamplerSchedule& wanted) {
  require_steps("KSampler", wanted.steps);
  const bool discard = wanted.penultimate == SamplerSchedule::Penultimate::kDiscard;
  const auto whole = [&](int steps) {
    Sigmas sigmas = schedule(discard ? steps + 1 : steps);
    if (discard && sigmas.size() >= 2) sigmas.erase(sigmas.end() - 2);
    return sigmas;
  };
  if (wanted.denoise > 0.9999) return whole(wanted.steps);
  if (wanted.denoise <= 0.0) return {};
  const int total = stretched_steps("KSampler", wanted.steps, wanted.denoise);
  return last_of(whole(total), static_cast<std::size_t>(wanted.steps) + 1);
}

Sigmas cut_sigmas(std::span<const float> sigmas, const StepRange& range) {
  if (range.start < 0 || range.end < 0) {
    throw std::invalid_argument("KSamplerAdvanced: steps " + std::to_string(range.start) + " to " +
                                std::to_string(range.end) + "; give 0 or more.");
  }
  Sigmas kept(sigmas.begin(), sigmas.end());
  const auto end = static_cast<std::size_t>(range.end);
  if (end + 1 < kept.size()) {
    kept.resize(end + 1);
    if (range.leftover == StepRange::Leftover::kRemove) kept.back() = 0.0f;
  }
  const auto start = static_cast<std::size_t>(range.start);
  if (start + 1 >= kept.size()) return {};
  kept.erase(kept.begin(), kept.begin() + range.start);
  return kept;
}

Sigmas with_finite_first_level(std::span<const float> sigmas, const NoiseLevels& levels) {
  Sigmas result(sigmas.begin(), sigmas.end());
  const bool flow = levels.percent_to_sigma(0.0) == 1.0;
  if (flow && result.size() > 1 && result.front() >= 1.0f) {
    result.front() = static_cast<float>(levels.percent_to_sigma(1e-4));
  }
  return result;
}

Sigmas karras_sigmas(int steps, double sigma_min, double sigma_max, double rho) {
  require_steps("karras", steps);
  require_range("karras", sigma_min, sigma_max);
  // Karras et al. 2022, equation 5.
  const double high = std::pow(sigma_max, 1.0 / rho);
  const double low = std::pow(sigma_min, 1.0 / rho);
  Sigmas sigmas = linspace(0.0f, 1.0f, steps);
  for (float& value : sigmas) {
    const float root = static_cast<float>(high) + value * static_cast<float>(low - high);
    value = std::pow(root, static_cast<float>(rho));
  }
  sigmas.push_back(0.0f);
  return sigmas;
}

Sigmas exponential_sigmas(int steps, double sigma_min, double sigma_max) {
  require_steps("exponential", steps);
  require_range("exponential", sigma_min, sigma_max);
  Sigmas sigmas = linspace(static_cast<float>(std::log(sigma_max)),
                           static_cast<float>(std::log(sigma_min)), steps);
  for (float& value : sigmas) value = std::exp(value);
  sigmas.push_back(0.0f);
  return sigmas;
}

Sigmas polyexponential_sigmas(int steps, double sigma_min, double sigma_max, double rho) {
  require_steps("polyexponential", steps);
  require_range("polyexponential", sigma_min, sigma_max);
  const auto low = static_cast<float>(std::log(sigma_min));
  const auto span = static_cast<float>(std::log(sigma_max) - std::log(sigma_min));
  Sigmas sigmas = linspace(1.0f, 0.0f, steps);
  for (float& value : sigmas) {
    value = std::exp(std::pow(value, static_cast<float>(rho)) * span + low);
  }
  sigmas.push_back(0.0f);
  return sigmas;
}

Sigmas beta_sigmas(const NoiseLevels& levels, int steps, double alpha, double beta) {
  require_steps("beta", steps);
  if (!(alpha > 0 && beta > 0)) {
    throw std::invalid_argument("beta: alpha " + std::to_string(alpha) + ", beta " +
                                std::to_string(beta) + "; both must be above 0.");
  }
  // Levels at the quantiles of a Beta distribution (Lee et al. 2024). In plain double as SciPy has
  // it: where a quantile falls between two levels, a last bit decides.
  using boost::math::policies::policy;
  using boost::math::policies::promote_double;
  const boost::math::beta_distribution<double, policy<promote_double<false>>> distribution(alpha,
                                                                                           beta);
  const std::span<const float> table = levels.sigmas();
  const double last_index = static_cast<double>(table.size() - 1);
  const double step = 1.0 / steps;
  double previous = -1.0;
  Sigmas sigmas;
  for (int k = 0; k < steps; ++k) {
    const double quantile = boost::math::quantile(distribution, 1.0 - k * step);
    const double index = std::nearbyint(quantile * last_index);  // half to even
    if (!(index >= 0 && index <= last_index))
      throw std::invalid_argument("beta: alpha " + std::to_string(alpha) + ", beta " +
                                  std::to_string(beta) +
                                  " give no levels; give numbers nearer to 1.");
    if (index != previous) sigmas.push_back(table[static_cast<std::size_t>(index)]);
    previous = index;
  }
  sigmas.push_back(0.0f);
  return sigmas;
}

Sigmas kl_optimal_sigmas(int steps, double sigma_min, double sigma_max) {
  require_steps("kl_optimal", steps);
  require_range("kl_optimal", sigma_min, sigma_max);
  // Align Your Steps (Sabour et al. 2024), the optimum for a Gaussian. One step has no spacing; it
  // starts at the top.
  if (steps == 1) return {static_cast<float>(sigma_max), 0.0f};
  const auto low = static_cast<float>(std::atan(sigma_min));
  const auto high = static_cast<float>(std::atan(sigma_max));
  Sigmas sigmas;
  for (int k = 0; k < steps; ++k) {
    const float part = static_cast<float>(k) / static_cast<float>(steps - 1);
    sigmas.push_back(std::tan(part * low + (1.0f - part) * high));
  }
  sigmas.push_back(0.0f);
  return sigmas;
}

Sigmas linear_quadratic_sigmas(int steps, double sigma_max) {
  require_steps("linear_quadratic", steps);
  if (steps == 1) return {static_cast<float>(sigma_max), 0.0f};
  // Movie Gen (Polyak et al. 2024): the first half moves through 2.5 % of the way in equal steps,
  // the second half through the rest in growing ones, with no kink between.
  constexpr double kSlowPart = 0.025;
  const int slow = steps / 2;
  const int fast = steps - slow;
  const double excess = slow - kSlowPart * steps;
  const double square = excess / (static_cast<double>(slow) * (static_cast<double>(fast) * fast));
  const double linear = kSlowPart / slow - 2.0 * excess / (static_cast<double>(fast) * fast);
  const double constant = square * (static_cast<double>(slow) * slow);
  Sigmas sigmas;
  for (int k = 0; k < steps; ++k) {
    const double part = k < slow ? k * kSlowPart / slow
                                 : square * (static_cast<double>(k) * k) + linear * k + constant;
    sigmas.push_back(static_cast<float>(1.0 - part) * static_cast<float>(sigma_max));
  }
  sigmas.push_back(0.0f);
  return sigmas;
}

Sigmas vp_sigmas(int steps, double beta_d, double beta_min, double epsilon) {
  require_steps("vp", steps);
  Sigmas sigmas = linspace(1.0f, static_cast<float>(epsilon), steps);
  for (float& t : sigmas) {
    const float exponent =
        static_cast<float>(beta_d) * t * t / 2.0f + static_cast<float>(beta_min) * t;
    t = std::sqrt(std::expm1(exponent));
  }
  sigmas.push_back(0.0f);
  return sigmas;
}

Sigmas laplace_sigmas(int steps, double sigma_min, double sigma_max, double mu, double beta) {
  require_steps("laplace", steps);
  require_range("laplace", sigma_min, sigma_max);
  Sigmas sigmas = linspace(0.0f, 1.0f, steps);
  for (float& x : sigmas) {
    const float off = 0.5f - x;
    const float sign = off > 0.0f ? 1.0f : off < 0.0f ? -1.0f : 0.0f;
    const float tail = std::log(1.0f - 2.0f * std::abs(off) + 1e-5f);
    const float level = std::exp(static_cast<float>(mu) - static_cast<float>(beta) * sign * tail);
    x = std::clamp(level, static_cast<float>(sigma_min), static_cast<float>(sigma_max));
  }
  return sigmas;
}

Sigmas turbo_sigmas(const NoiseLevels& levels, int steps, double denoise) {
  require_steps("SDTurboScheduler", steps);
  const int skipped = 10 - static_cast<int>(10.0 * std::clamp(denoise, 0.0, 1.0));
  Sigmas sigmas;
  for (int k = skipped; k < std::min(10, skipped + steps); ++k) {
    sigmas.push_back(levels.sigma(static_cast<float>(999 - 100 * k)));
  }
  sigmas.push_back(0.0f);
  return sigmas;
}

Sigmas ltxv_sigmas(int steps, double mu, std::optional<double> terminal) {
  require_steps("LTXVScheduler", steps);
  const auto e = static_cast<float>(std::exp(mu));
  Sigmas sigmas = linspace(1.0f, 0.0f, steps + 1);
  for (float& t : sigmas) {
    if (t != 0.0f) t = 1.0f / (e + (1.0f / t - 1.0f)) * e;
  }
  if (!terminal) return sigmas;
  const float last = sigmas[sigmas.size() - 2];
  const float scale = (1.0f - last) / static_cast<float>(1.0 - *terminal);
  // One step has nothing to stretch: its only level is 1.
  if (scale == 0.0f) return sigmas;
  for (std::size_t k = 0; k + 1 < sigmas.size(); ++k) {
    sigmas[k] = 1.0f - (1.0f - sigmas[k]) / scale;
  }
  return sigmas;
}

double normal_quantile(double part) {
  return boost::math::quantile(boost::math::normal_distribution<double>(), part);
}

}  // namespace heddle::samplers
