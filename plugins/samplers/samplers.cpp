#include "samplers.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace heddle::samplers {
namespace {

std::vector<SamplerMethod>& registered() {
  static std::vector<SamplerMethod> methods;
  return methods;
}

bool is_finite(const Combination& combination) {
  return std::all_of(combination.begin(), combination.end(),
                     [](const auto& term) { return std::isfinite(term.factor); });
}

[[noreturn]] void refuse(const SamplerMethod& method, std::span<const float> sigmas, std::size_t i,
                         std::string_view advice) {
  throw std::invalid_argument("sampler " + std::string(method.name) + ", step " +
                              std::to_string(i) + " of " + std::to_string(sigmas.size() - 1) +
                              ": no step from sigma " + std::to_string(sigmas[i]) + " to " +
                              std::to_string(sigmas[i + 1]) + ". " + std::string(advice));
}

void require_finite(const SamplerMethod& method, const Step& step,
                    const std::vector<Evaluation>& evaluations) {
  for (const Evaluation& evaluation : evaluations) {
    if (is_finite(evaluation.next) && is_finite(evaluation.start)) continue;
    refuse(method, step.sigmas(), step.i,
           (method.flags & HEDDLE_SAMPLER_FINITE_FIRST_LEVEL) != 0 && step.run.sigmas[0] >= 1.0f
               ? "Its formula divides by the signal: start a flow below sigma 1."
               : "Its formula has no finite value here: give levels that differ and fall.");
  }
}

void require_levels(const SamplerMethod& method, std::span<const float> sigmas, std::size_t i) {
  if (i + 1 >= sigmas.size()) {
    throw std::invalid_argument("sampler " + std::string(method.name) + ": step " +
                                std::to_string(i) + " of a schedule of " +
                                std::to_string(sigmas.size()) +
                                " levels, which has one step fewer.");
  }
  const bool levels_fit = sigmas[i] > 0.0f && std::isfinite(sigmas[i]) && sigmas[i + 1] >= 0.0f &&
                          std::isfinite(sigmas[i + 1]);
  if (!levels_fit) refuse(method, sigmas, i, "Levels are finite, above 0, and at last 0.");
}

}  // namespace

double factor_of(const Combination& combination, std::int32_t of, std::uint32_t age) {
  for (const heddle_sampler_term& term : combination) {
    if (term.of == of && term.age == age) return term.factor;
  }
  return 0.0;
}

double Step::option(std::string_view name, double otherwise) const {
  for (std::uint32_t k = 0; k < run.option_count; ++k) {
    if (name == run.options[k].name) return run.options[k].value;
  }
  return otherwise;
}

Registered::Registered(const SamplerMethod& method) {
  std::vector<SamplerMethod>& methods = registered();
  const auto behind = [](const SamplerMethod& a, const SamplerMethod& b) {
    return a.place < b.place;
  };
  methods.insert(std::upper_bound(methods.begin(), methods.end(), method, behind), method);
}

std::span<const SamplerMethod> sampler_methods() { return registered(); }

const SamplerMethod* find_sampler(std::string_view name) {
  for (const SamplerMethod& method : registered()) {
    if (name == method.name) return &method;
  }
  return nullptr;
}

double final_sigma(const SamplerMethod& method, const heddle_sampler_run& run) {
  const double last = run.sigmas[run.sigma_count - 1];
  return method.end == nullptr ? last : method.end(last);
}

std::vector<Evaluation> sampler_step(const SamplerMethod& method, const heddle_sampler_run& run,
                                     std::size_t i) {
  const Step step{run, i};
  require_levels(method, step.sigmas(), i);
  std::vector<Evaluation> evaluations = method.step(step);
  require_finite(method, step, evaluations);
  return evaluations;
}

std::vector<Evaluation> sampler_attempt(const SamplerMethod& method, const heddle_sampler_run& run,
                                        heddle_sampler_attempt& state) {
  const Step first{run, 0};
  require_levels(method, first.sigmas(), 0);
  std::vector<Evaluation> evaluations = method.attempt(first, state);
  require_finite(method, first, evaluations);
  return evaluations;
}

}  // namespace heddle::samplers
