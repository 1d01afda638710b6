// Samplers as data: for every step of a schedule, the coefficients of the linear combinations that
// lead to the next one. The caller owns the tensors, calls the model and adds; nothing here sees a
// tensor. So one loop on any device runs every sampler:
//
//   start = point = initial x
//   for each step i: for each Evaluation e of sampler_step(sampler, sigmas, i):
//     D = denoised at (point, e.sigma);  push D to the front of the history of evaluations
//     next = combine(e.next)          // of start, the evaluations, earlier slopes, fresh noise
//     start = e.after == kMoveStart ? next : e.after == kCorrectStart ? combine(e.start) : start
//     point = next                    // both combinations read the old start
//   after step i of a sampler with slopes: push (x_i - D_i) / sigma_i, x_i the start at the
//     beginning of step i, D_i its evaluation, to the front of the slopes.
//
// Formulas: k-diffusion and the papers named at each, as ComfyUI runs them. All in double: the
// coefficients are good to 1e-12 where the reference's are single precision. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace heddle::samplers {

// How noise enters x, for the samplers that care.
enum class Process {
  kDiffusion,  // x = picture + sigma noise: every Prediction but kFlow
  kFlow,       // x = (1 - sigma) picture + sigma noise
};

enum class Method {
  kEuler,
  kEulerAncestral,
  kHeun,
  kHeunPp2,
  kDpm2,
  kDpm2Ancestral,
  kLms,
  kDpmPp2sAncestral,
  kDpmPp2m,
  kDpmPp2mSde,
  kDpmPp2mSdeHeun,
  kDpmPp3mSde,
  kDdpm,
  kLcm,
  kIpndm,
  kIpndmV,
  kDeis,
  kResMultistep,
  kResMultistepAncestral,
  kGradientEstimation,
  kErSde,
  kUniPc,
  kUniPcBh2,
};

// What a caller has to provide for a sampler.
struct SamplerTraits {
  std::string_view name;  // as workflows write it; two names may share a method
  Method method;
  int most_evaluations;             // model calls of one step, at most
  int denoised_history;             // evaluations to keep, the present one included
  int slope_history;                // slopes of earlier steps to keep
  bool draws_noise;                 // some Combination::noise is not 0
  bool discards_penultimate_sigma;  // in KSampler nodes: SamplerSchedule::Penultimate::kDiscard
  bool needs_finite_first_level;    // give it with_finite_first_level(sigmas)
};

// All supported names, in the order of the list that people choose from.
std::span<const SamplerTraits> sampler_traits();
// Null if `name` is not supported. Points into static data.
const SamplerTraits* find_sampler(std::string_view name);

struct Sampler {
  Method method = Method::kEuler;
  Process process = Process::kDiffusion;
  double eta = 1.0;           // fresh noise of ancestral and DPM++ SDE methods; 0 is none
  double noise_factor = 1.0;  // of the fresh noise ("s_noise")
};

// x * start + sum denoised[k] * D_k + sum slopes[k] * d_k + noise * (a fresh standard normal draw).
struct Combination {
  double x = 0.0;
  std::array<double, 4> denoised{};  // [0] the evaluation just made, [1] the one before ...
  std::array<double, 3> slopes{};    // [0] of the step before this one ...
  double noise = 0.0;                // 0: nothing is drawn
};

struct Evaluation {
  enum class After {
    kKeepStart,  // a further evaluation of this step follows; its combinations use the same start
    kMoveStart,  // the step is done: start = next
    kCorrectStart,  // the step is done: start = the combination `start`
  };

  double sigma = 0.0;  // level at which the model sees the present point
  Combination next;
  After after = After::kMoveStart;
  Combination start;  // for kCorrectStart
};

// Step `i` of `sigmas` (levels from noisy to clean, `i` + 1 < sigmas.size()). Empty if the sampler
// does nothing in this step: uni_pc with a schedule of one step.
// Throws std::invalid_argument if `i` is no step or the two levels are not
// 0 <= sigmas[i + 1] < sigmas[i] < infinity (equal levels, too, make steps of no length: drop
// them).
std::vector<Evaluation> sampler_step(const Sampler& sampler, std::span<const float> sigmas,
                                     std::size_t i);

// The level at which a run really ends: uni_pc stops at 0.001 in the place of 0, and
// inverse_noise_scaling is to be given this one. REQUIRES: sigmas is not empty.
double final_sigma(Method method, std::span<const float> sigmas);

}  // namespace heddle::samplers
