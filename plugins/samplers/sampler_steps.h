// The sampler formulas behind samplers.h, written over a small algebra of symbols, so that each
// reads as it does in its paper. Internal to the samplers; pure functions, any thread.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "samplers.h"

namespace heddle::samplers::steps {

// A linear combination of what a step knows. Unlike Combination, evaluations are named by when they
// are made: own[k] in this step, past[k] in steps before, [0] the last.
struct Expr {
  double start = 0.0;
  std::array<double, 3> own{};
  std::array<double, 3> past{};
  std::array<double, 3> slopes{};
  double noise = 0.0;
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(double factor, const Expr& a);

inline Expr start() { return {.start = 1.0}; }
Expr own(std::size_t k);
Expr past(std::size_t k);
Expr earlier_slope(std::size_t k);
Expr fresh_noise(double factor);

// The evaluation number `k` of a step, at level `sigma`, and where it leads.
Evaluation inner(std::size_t k, double sigma, const Expr& next);
Evaluation last(std::size_t k, double sigma, const Expr& next);
Evaluation corrected(double sigma, const Expr& start, const Expr& next);

// What every formula takes.
struct Step {
  const Sampler& sampler;
  std::span<const float> sigmas;
  std::size_t i;

  double sigma() const { return sigmas[i]; }
  double next() const { return sigmas[i + 1]; }
  double before(std::size_t steps) const { return sigmas[i - steps]; }
  bool flow() const { return sampler.process == Process::kFlow; }
  // Logarithm of the ratio of signal to noise, and the part of the signal, at a level.
  double lambda(double level) const {
    return flow() ? std::log((1.0 - level) / level) : -std::log(level);
  }
  double alpha(double level) const { return flow() ? 1.0 - level : 1.0; }
};

// The step that ends at the clean picture.
inline std::vector<Evaluation> to_denoised(const Step& step) {
  return {last(0, step.sigma(), own(0))};
}

// Where a step with fresh noise lands before the noise is added, and how much is added.
struct Landing {
  double down = 0.0;
  double up = 0.0;
  double rescale = 1.0;  // of the landed x, in flows
};
// k-diffusion's rule for x = picture + sigma noise: the variances of `down` and `up` add up to
// `to`.
Landing ancestral(double from, double to, double eta);
// The rule of the process, flows included.
Landing land(const Step& step);

std::vector<Evaluation> euler(const Step& step);
std::vector<Evaluation> euler_ancestral(const Step& step);
std::vector<Evaluation> heun(const Step& step);
std::vector<Evaluation> heun_pp2(const Step& step);
std::vector<Evaluation> dpm_2(const Step& step);
std::vector<Evaluation> dpm_2_ancestral(const Step& step);
std::vector<Evaluation> dpmpp_2s_ancestral(const Step& step);
std::vector<Evaluation> ddpm(const Step& step);
std::vector<Evaluation> lcm(const Step& step);

std::vector<Evaluation> dpmpp_2m(const Step& step);
enum class Correction { kMidpoint, kHeun };
std::vector<Evaluation> dpmpp_2m_sde(const Step& step, Correction correction);
std::vector<Evaluation> dpmpp_3m_sde(const Step& step);
// `eta` is the method's own: 0, or the sampler's for the ancestral form.
std::vector<Evaluation> res_multistep(const Step& step, double eta);
std::vector<Evaluation> er_sde(const Step& step);
enum class Scale { kStep, kExpm1 };  // B(h) = h, or e^h - 1: bh1 and bh2
std::vector<Evaluation> uni_pc(const Step& step, Scale scale);

std::vector<Evaluation> lms(const Step& step);
std::vector<Evaluation> ipndm(const Step& step);
std::vector<Evaluation> ipndm_v(const Step& step);
std::vector<Evaluation> deis(const Step& step);
std::vector<Evaluation> gradient_estimation(const Step& step);

}  // namespace heddle::samplers::steps
