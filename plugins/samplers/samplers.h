// Samplers as data: for every step of a schedule, the coefficients of the linear combinations that
// lead to the next one (heddle/diffusion/samplers.h has the loop that follows them). The caller
// owns the tensors, calls the model and adds; nothing here sees a tensor. So one loop on any device
// runs every sampler.
//
// A sampler is a file of plugins/samplers/methods that registers what is below. Formulas:
// k-diffusion and the papers named at each, as ComfyUI runs them. All in double: the coefficients
// are good to 1e-12 where the reference's are single precision. Pure; any thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <heddle/diffusion/samplers.h>

namespace heddle::samplers {

using Combination = std::vector<heddle_sampler_term>;  // by kind, then by age

struct Evaluation {
  double sigma = 0.0;  // level at which the model sees the present point
  Combination next;
  std::int32_t after = HEDDLE_SAMPLER_MOVE_START;
  Combination start;
  float noise_from = 0.0f, noise_to = 0.0f;
  double noise_clip = 0.0;
};

// The factor of a term, 0 if it is not there.
double factor_of(const Combination& combination, std::int32_t of, std::uint32_t age = 0);

// Step `i` of a run: what every formula takes.
struct Step {
  const heddle_sampler_run& run;
  std::size_t i;

  std::span<const float> sigmas() const { return {run.sigmas, run.sigma_count}; }
  double sigma() const { return run.sigmas[i]; }
  double next() const { return run.sigmas[i + 1]; }
  double before(std::size_t steps) const { return run.sigmas[i - steps]; }
  std::size_t count() const { return run.sigma_count - 1; }
  bool flow() const { return run.flow != 0; }
  // Logarithm of the ratio of signal to noise, and the part of the signal, at a level.
  double lambda(double level) const {
    return flow() ? std::log((1.0 - level) / level) : -std::log(level);
  }
  double alpha(double level) const { return flow() ? 1.0 - level : 1.0; }
  double level_at(double lambda) const {
    return flow() ? 1.0 / (std::exp(lambda) + 1.0) : std::exp(-lambda);
  }
  double option(std::string_view name, double otherwise) const;
};

// What Step::option() asks for; the range has both of its ends.
constexpr heddle_sampler_option_desc sampler_option(const char* name, double least, double most) {
  return {sizeof(heddle_sampler_option_desc), name, "", least, most};
}

struct SamplerMethod {
  const char* name;  // as workflows write it
  int place;         // in the list that people choose from: in rising order
  std::vector<Evaluation> (*step)(const Step& step);
  std::uint32_t flags = 0;  // HEDDLE_SAMPLER_DRAWS_NOISE ...
  // Optional: the level at which a run to `last` really ends.
  double (*end)(double last) = nullptr;
  // Optional, in the place of step; `first` is step 0.
  std::vector<Evaluation> (*attempt)(const Step& first, heddle_sampler_attempt& state) = nullptr;
  std::vector<heddle_sampler_option_desc> options = {};
};

// At namespace scope, of static storage: puts a sampler into the list.
struct Registered {
  explicit Registered(const SamplerMethod& method);
};

// All, in the order of the list that people choose from.
std::span<const SamplerMethod> sampler_methods();
// Null if there is no such name. Points into static data.
const SamplerMethod* find_sampler(std::string_view name);

// Step `i` of the run. Empty if the sampler does nothing in this step: uni_pc with a schedule of
// one step. Throws std::invalid_argument if `i` is no step or the two levels are not
// 0 <= sigmas[i + 1] < sigmas[i] < infinity (equal levels, too, make steps of no length: drop
// them), or a coefficient is not finite.
std::vector<Evaluation> sampler_step(const SamplerMethod& method, const heddle_sampler_run& run,
                                     std::size_t i);
// The next attempt of a sampler that makes such. Throws as sampler_step().
std::vector<Evaluation> sampler_attempt(const SamplerMethod& method, const heddle_sampler_run& run,
                                        heddle_sampler_attempt& state);

// The level at which a run really ends: uni_pc stops at 0.001 in the place of 0, and
// inverse_noise_scaling is to be given this one. REQUIRES: the run has levels.
double final_sigma(const SamplerMethod& method, const heddle_sampler_run& run);

}  // namespace heddle::samplers
