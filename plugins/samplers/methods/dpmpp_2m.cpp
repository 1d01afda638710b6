// DPM-Solver++(2M) (Lu et al. 2022b). Its lambda is -ln sigma for flows, too.
#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

std::vector<Evaluation> dpmpp_2m(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  const double h = std::log(from / to);
  Expr denoised = own(0);
  if (step.i > 0) {
    const double ratio = std::log(step.before(1) / from) / h;
    denoised = denoised + (1.0 / (2.0 * ratio)) * (own(0) - past(0));
  }
  return {last(0, from, (to / from) * start() + (-std::expm1(-h)) * denoised)};
}

// By CFG++ (Chung et al. 2024).
std::vector<Evaluation> dpmpp_2m_plus(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  const double h = std::log(from / to);
  Expr x = own(0) + (to / from) * (start() - own_plain(0));
  if (step.i > 0) {
    const double ratio = std::log(step.before(1) / from) / h;
    x = x + (-std::expm1(-h) / (2.0 * ratio)) * (own(0) - past_plain(0));
  }
  return {last(0, from, x)};
}

const Registered kDpmPp2m({.name = "dpmpp_2m", .place = 180, .step = &dpmpp_2m});
const Registered kDpmPp2mPlus({.name = "dpmpp_2m_cfg_pp",
                               .place = 190,
                               .step = &dpmpp_2m_plus,
                               .flags = HEDDLE_SAMPLER_LOOKS_TWICE});

}  // namespace
}  // namespace heddle::samplers::steps
