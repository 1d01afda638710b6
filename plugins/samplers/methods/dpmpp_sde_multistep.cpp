// DPM-Solver++ SDE of several steps, as k-diffusion has it.
#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

// D found at this step minus D found at the one before, and so on.
Expr difference() { return own(0) - past(0); }
Expr earlier_difference() { return past(0) - past(1); }

// The common part of DPM-Solver++ SDE steps: the first-order step, and its fresh noise.
struct SdeStep {
  double h;      // step in lambda
  double total;  // h (1 + eta)
  Expr x;
  Expr noise;
};

SdeStep sde_step(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  const double eta = step.run.eta;
  const double h = step.lambda(to) - step.lambda(from);
  const double total = h * (1.0 + eta);
  const Expr x =
      (to / from) * std::exp(-eta * h) * start() + (-step.alpha(to) * std::expm1(-total)) * own(0);
  const double spread = std::sqrt(-std::expm1(-2.0 * eta * h));
  return {h, total, x, fresh_noise(to * spread * step.run.noise_factor)};
}

// Length in lambda of the step `back` steps before this one.
double earlier_h(const Step& step, std::size_t back) {
  return step.lambda(step.before(back - 1)) - step.lambda(step.before(back));
}

enum class Correction { kMidpoint, kHeun };

std::vector<Evaluation> dpmpp_2m_sde(const Step& step, Correction correction) {
  if (step.next() == 0.0) return to_denoised(step);
  const SdeStep sde = sde_step(step);
  Expr x = sde.x;
  if (step.i > 0) {
    const double ratio = earlier_h(step, 1) / sde.h;
    const double weight = correction == Correction::kMidpoint ? -0.5 * std::expm1(-sde.total)
                                                              : 1.0 - phi1(-sde.total);
    x = x + (step.alpha(step.next()) * weight / ratio) * difference();
  }
  return {last(0, step.sigma(), x + sde.noise)};
}

std::vector<Evaluation> dpmpp_3m_sde(const Step& step) {
  if (step.next() == 0.0) return to_denoised(step);
  const SdeStep sde = sde_step(step);
  const double alpha = step.alpha(step.next());
  const double weight2 = std::expm1(-sde.total) / sde.total + 1.0;
  const double weight3 = weight2 / sde.total - 0.5;
  Expr x = sde.x;
  if (step.i == 1) {
    x = x + (alpha * weight2 * sde.h / earlier_h(step, 1)) * difference();
  } else if (step.i > 1) {
    const double r0 = earlier_h(step, 1) / sde.h;
    const double r1 = earlier_h(step, 2) / sde.h;
    const Expr recent = (1.0 / r0) * difference();
    const Expr older = (1.0 / r1) * earlier_difference();
    const Expr second = (1.0 / (r0 + r1)) * (recent - older);
    const Expr first = recent + r0 * second;
    x = x + (alpha * weight2) * first - (alpha * weight3) * second;
  }
  return {last(0, step.sigma(), x + sde.noise)};
}

std::vector<Evaluation> midpoint(const Step& step) {
  return dpmpp_2m_sde(step, Correction::kMidpoint);
}

std::vector<Evaluation> heun_form(const Step& step) {
  return dpmpp_2m_sde(step, Correction::kHeun);
}

// The path is followed on the host, whatever the names say: a device changes no picture.
constexpr std::uint32_t kSdeFlags =
    HEDDLE_SAMPLER_DRAWS_NOISE | HEDDLE_SAMPLER_FINITE_FIRST_LEVEL | HEDDLE_SAMPLER_BROWNIAN;
const Registered kDpmPp2mSde(
    {.name = "dpmpp_2m_sde", .place = 200, .step = &midpoint, .flags = kSdeFlags});
const Registered kDpmPp2mSdeGpu(
    {.name = "dpmpp_2m_sde_gpu", .place = 210, .step = &midpoint, .flags = kSdeFlags});
const Registered kDpmPp2mSdeHeun(
    {.name = "dpmpp_2m_sde_heun", .place = 220, .step = &heun_form, .flags = kSdeFlags});
const Registered kDpmPp2mSdeHeunGpu(
    {.name = "dpmpp_2m_sde_heun_gpu", .place = 230, .step = &heun_form, .flags = kSdeFlags});
const Registered kDpmPp3mSde(
    {.name = "dpmpp_3m_sde", .place = 240, .step = &dpmpp_3m_sde, .flags = kSdeFlags});
const Registered kDpmPp3mSdeGpu(
    {.name = "dpmpp_3m_sde_gpu", .place = 250, .step = &dpmpp_3m_sde, .flags = kSdeFlags});

}  // namespace
}  // namespace heddle::samplers::steps
