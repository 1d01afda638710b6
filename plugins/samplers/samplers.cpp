#include "samplers.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sampler_steps.h"

namespace heddle::samplers {
namespace {

constexpr bool kNoise = true;
constexpr bool kQuiet = false;
constexpr bool kDiscard = true;
constexpr bool kKeep = false;
constexpr bool kFinite = true;
constexpr bool kAny = false;

// name, method, evaluations a step, evaluations kept, slopes kept, noise, penultimate, first level
constexpr SamplerTraits kTraits[] = {
    {"euler", Method::kEuler, 1, 1, 0, kQuiet, kKeep, kAny},
    {"euler_ancestral", Method::kEulerAncestral, 1, 1, 0, kNoise, kKeep, kAny},
    {"heun", Method::kHeun, 2, 2, 0, kQuiet, kKeep, kAny},
    {"heunpp2", Method::kHeunPp2, 3, 3, 0, kQuiet, kKeep, kAny},
    {"dpm_2", Method::kDpm2, 2, 2, 0, kQuiet, kDiscard, kAny},
    {"dpm_2_ancestral", Method::kDpm2Ancestral, 2, 2, 0, kNoise, kDiscard, kAny},
    {"lms", Method::kLms, 1, 1, 3, kQuiet, kKeep, kAny},
    {"dpmpp_2s_ancestral", Method::kDpmPp2sAncestral, 2, 2, 0, kNoise, kKeep, kAny},
    {"dpmpp_2m", Method::kDpmPp2m, 1, 2, 0, kQuiet, kKeep, kAny},
    {"dpmpp_2m_sde", Method::kDpmPp2mSde, 1, 2, 0, kNoise, kKeep, kFinite},
    {"dpmpp_2m_sde_gpu", Method::kDpmPp2mSde, 1, 2, 0, kNoise, kKeep, kFinite},
    {"dpmpp_2m_sde_heun", Method::kDpmPp2mSdeHeun, 1, 2, 0, kNoise, kKeep, kFinite},
    {"dpmpp_2m_sde_heun_gpu", Method::kDpmPp2mSdeHeun, 1, 2, 0, kNoise, kKeep, kFinite},
    {"dpmpp_3m_sde", Method::kDpmPp3mSde, 1, 3, 0, kNoise, kKeep, kFinite},
    {"dpmpp_3m_sde_gpu", Method::kDpmPp3mSde, 1, 3, 0, kNoise, kKeep, kFinite},
    {"ddpm", Method::kDdpm, 1, 1, 0, kNoise, kKeep, kAny},
    {"lcm", Method::kLcm, 1, 1, 0, kNoise, kKeep, kAny},
    {"ipndm", Method::kIpndm, 1, 1, 3, kQuiet, kKeep, kAny},
    {"ipndm_v", Method::kIpndmV, 1, 1, 3, kQuiet, kKeep, kAny},
    {"deis", Method::kDeis, 1, 1, 2, kQuiet, kKeep, kAny},
    {"res_multistep", Method::kResMultistep, 1, 2, 0, kQuiet, kKeep, kAny},
    {"res_multistep_ancestral", Method::kResMultistepAncestral, 1, 2, 0, kNoise, kKeep, kAny},
    {"gradient_estimation", Method::kGradientEstimation, 1, 1, 1, kQuiet, kKeep, kAny},
    {"er_sde", Method::kErSde, 1, 3, 0, kNoise, kKeep, kFinite},
    // Differs from euler only in the noise of inpainting, which is not the sampler's.
    {"ddim", Method::kEuler, 1, 1, 0, kQuiet, kKeep, kAny},
    {"uni_pc", Method::kUniPc, 1, 4, 0, kQuiet, kDiscard, kAny},
    {"uni_pc_bh2", Method::kUniPcBh2, 1, 4, 0, kQuiet, kDiscard, kAny},
};

constexpr double kUniPcEnd = 0.001;

std::string_view name_of(Method method) {
  const auto found = std::find_if(std::begin(kTraits), std::end(kTraits),
                                  [method](const auto& traits) { return traits.method == method; });
  return found->name;
}

std::vector<Evaluation> dispatch(const steps::Step& step) {
  switch (step.sampler.method) {
    case Method::kEuler:
      return steps::euler(step);
    case Method::kEulerAncestral:
      return steps::euler_ancestral(step);
    case Method::kHeun:
      return steps::heun(step);
    case Method::kHeunPp2:
      return steps::heun_pp2(step);
    case Method::kDpm2:
      return steps::dpm_2(step);
    case Method::kDpm2Ancestral:
      return steps::dpm_2_ancestral(step);
    case Method::kLms:
      return steps::lms(step);
    case Method::kDpmPp2sAncestral:
      return steps::dpmpp_2s_ancestral(step);
    case Method::kDpmPp2m:
      return steps::dpmpp_2m(step);
    case Method::kDpmPp2mSde:
      return steps::dpmpp_2m_sde(step, steps::Correction::kMidpoint);
    case Method::kDpmPp2mSdeHeun:
      return steps::dpmpp_2m_sde(step, steps::Correction::kHeun);
    case Method::kDpmPp3mSde:
      return steps::dpmpp_3m_sde(step);
    case Method::kDdpm:
      return steps::ddpm(step);
    case Method::kLcm:
      return steps::lcm(step);
    case Method::kIpndm:
      return steps::ipndm(step);
    case Method::kIpndmV:
      return steps::ipndm_v(step);
    case Method::kDeis:
      return steps::deis(step);
    case Method::kResMultistep:
      return steps::res_multistep(step, 0.0);
    case Method::kResMultistepAncestral:
      return steps::res_multistep(step, step.sampler.eta);
    case Method::kGradientEstimation:
      return steps::gradient_estimation(step);
    case Method::kErSde:
      return steps::er_sde(step);
    case Method::kUniPc:
      return steps::uni_pc(step, steps::Scale::kStep);
    case Method::kUniPcBh2:
      return steps::uni_pc(step, steps::Scale::kExpm1);
  }
  return {};
}

bool is_finite(const Combination& combination) {
  const auto finite = [](double value) { return std::isfinite(value); };
  return finite(combination.x) && finite(combination.noise) &&
         std::all_of(combination.denoised.begin(), combination.denoised.end(), finite) &&
         std::all_of(combination.slopes.begin(), combination.slopes.end(), finite);
}

[[noreturn]] void refuse(Method method, std::span<const float> sigmas, std::size_t i,
                         std::string_view advice) {
  throw std::invalid_argument("sampler " + std::string(name_of(method)) + ", step " +
                              std::to_string(i) + " of " + std::to_string(sigmas.size() - 1) +
                              ": no step from sigma " + std::to_string(sigmas[i]) + " to " +
                              std::to_string(sigmas[i + 1]) + ". " + std::string(advice));
}

}  // namespace

std::span<const SamplerTraits> sampler_traits() { return kTraits; }

const SamplerTraits* find_sampler(std::string_view name) {
  const auto found = std::find_if(std::begin(kTraits), std::end(kTraits),
                                  [name](const auto& traits) { return traits.name == name; });
  return found == std::end(kTraits) ? nullptr : found;
}

double final_sigma(Method method, std::span<const float> sigmas) {
  const bool stops_short = method == Method::kUniPc || method == Method::kUniPcBh2;
  return stops_short && sigmas.back() == 0.0f ? kUniPcEnd : sigmas.back();
}

std::vector<Evaluation> sampler_step(const Sampler& sampler, std::span<const float> sigmas,
                                     std::size_t i) {
  if (i + 1 >= sigmas.size()) {
    throw std::invalid_argument("sampler " + std::string(name_of(sampler.method)) + ": step " +
                                std::to_string(i) + " of a schedule of " +
                                std::to_string(sigmas.size()) +
                                " levels, which has one step fewer.");
  }
  const bool levels_fit = sigmas[i] > 0.0f && std::isfinite(sigmas[i]) && sigmas[i + 1] >= 0.0f &&
                          std::isfinite(sigmas[i + 1]);
  if (!levels_fit) refuse(sampler.method, sigmas, i, "Levels are finite, above 0, and at last 0.");
  std::vector<Evaluation> evaluations = dispatch({sampler, sigmas, i});
  for (const Evaluation& evaluation : evaluations) {
    if (is_finite(evaluation.next) && is_finite(evaluation.start)) continue;
    const SamplerTraits* traits = find_sampler(name_of(sampler.method));
    refuse(sampler.method, sigmas, i,
           traits->needs_finite_first_level && sigmas.front() >= 1.0f
               ? "Its formula divides by the signal: start a flow below sigma 1."
               : "Its formula has no finite value here: give levels that differ and fall.");
  }
  return evaluations;
}

}  // namespace heddle::samplers
