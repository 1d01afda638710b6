// Zhang et al. 2023 (refined exponential solver), second order; lambda is -ln sigma for flows, too.
#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

enum class Guided { kUsual, kPlusPlus };  // by D, or by CFG++ (Chung et al. 2024)

// `eta` is the method's own: 0, or the run's for the ancestral form.
std::vector<Evaluation> res_step(const Step& step, double eta, Guided guided) {
  const double from = step.sigma();
  const Landing landing = ancestral(from, step.next(), eta);
  const Expr noise = fresh_noise(landing.up * step.run.noise_factor);
  const bool plus = guided == Guided::kPlusPlus;
  if (step.i == 0 || landing.down == 0.0) {
    const double kept = landing.down / from;
    if (plus) return {last(0, from, own(0) + kept * (start() - own_plain(0)) + noise)};
    return {last(0, from, kept * start() + (1.0 - kept) * own(0) + noise)};
  }
  const double h = std::log(from / landing.down);
  const double before = step.before(1);
  const double down_before = ancestral(before, from, eta).down;
  const double c2 = std::log(down_before / before) / h;
  const double b2 = phi2(-h) / c2;
  const double b1 = phi1(-h) - b2;
  if (plus) {
    const Expr moved = start() + own(0) - own_plain(0);
    return {
        last(0, from,
             std::exp(-h) * moved + (h * b1) * own_plain(0) + (h * b2) * past_plain(0) + noise)};
  }
  const Expr x = std::exp(-h) * start() + (h * b1) * own(0) + (h * b2) * past(0);
  return {last(0, from, x + noise)};
}

std::vector<Evaluation> res(const Step& step) { return res_step(step, 0.0, Guided::kUsual); }

std::vector<Evaluation> res_plus(const Step& step) {
  return res_step(step, 0.0, Guided::kPlusPlus);
}

std::vector<Evaluation> res_ancestral(const Step& step) {
  return res_step(step, step.run.eta, Guided::kUsual);
}

std::vector<Evaluation> res_ancestral_plus(const Step& step) {
  return res_step(step, step.run.eta, Guided::kPlusPlus);
}

const Registered kRes({.name = "res_multistep", .place = 310, .step = &res});
const Registered kResPlus({.name = "res_multistep_cfg_pp",
                           .place = 320,
                           .step = &res_plus,
                           .flags = HEDDLE_SAMPLER_LOOKS_TWICE});
const Registered kResAncestral({.name = "res_multistep_ancestral",
                                .place = 330,
                                .step = &res_ancestral,
                                .flags = HEDDLE_SAMPLER_DRAWS_NOISE});
const Registered kResAncestralPlus({.name = "res_multistep_ancestral_cfg_pp",
                                    .place = 340,
                                    .step = &res_ancestral_plus,
                                    .flags = HEDDLE_SAMPLER_DRAWS_NOISE |
                                             HEDDLE_SAMPLER_LOOKS_TWICE});

}  // namespace
}  // namespace heddle::samplers::steps
