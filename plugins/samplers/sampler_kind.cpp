#include "sampler_kind.h"

#include <algorithm>
#include <cmath>

#include "samplers.h"
#include "user_error.h"

namespace heddle::samplers {
namespace {

heddle_sampler_sum sum_of(const Combination& from) {
  heddle_sampler_sum to{};
  to.x = from.x;
  std::copy(from.denoised.begin(), from.denoised.end(), to.denoised);
  std::copy(from.slopes.begin(), from.slopes.end(), to.slopes);
  to.noise = from.noise;
  return to;
}

std::int32_t after_of(Evaluation::After after) {
  switch (after) {
    case Evaluation::After::kKeepStart:
      return HEDDLE_SAMPLER_KEEP_START;
    case Evaluation::After::kCorrectStart:
      return HEDDLE_SAMPLER_CORRECT_START;
    case Evaluation::After::kMoveStart:
      break;
  }
  return HEDDLE_SAMPLER_MOVE_START;
}

std::span<const float> levels_of(const heddle_sampler_run& run) {
  return {run.sigmas, run.sigma_count};
}

heddle_status* step(const heddle_host*, const heddle_sampler_desc* self,
                    const heddle_sampler_run* run, std::uint32_t index,
                    void (*emit)(void*, const heddle_sampler_evaluation*), void* to) {
  return guard([&] {
    const Sampler sampler{find_sampler(self->name)->method,
                          run->flow != 0 ? Process::kFlow : Process::kDiffusion, run->eta,
                          run->noise_factor};
    const std::vector<Evaluation> evaluations =
        with_user_errors([&] { return sampler_step(sampler, levels_of(*run), index); });
    for (const Evaluation& evaluation : evaluations) {
      const heddle_sampler_evaluation out{sizeof(heddle_sampler_evaluation),
                                          after_of(evaluation.after), evaluation.sigma,
                                          sum_of(evaluation.next), sum_of(evaluation.start)};
      emit(to, &out);
    }
  });
}

double last_level(const heddle_sampler_desc* self, const heddle_sampler_run* run) {
  return final_sigma(find_sampler(self->name)->method, levels_of(*run));
}

heddle_sampler_desc desc_of(const SamplerTraits& traits) {
  std::uint32_t flags = 0;
  if (traits.draws_noise) flags |= HEDDLE_SAMPLER_DRAWS_NOISE;
  if (traits.discards_penultimate_sigma) flags |= HEDDLE_SAMPLER_DISCARDS_PENULTIMATE;
  if (traits.needs_finite_first_level) flags |= HEDDLE_SAMPLER_FINITE_FIRST_LEVEL;
  // The names are literals, so they end in NUL.
  return {sizeof(heddle_sampler_desc),
          traits.name.data(),
          "",
          flags,
          std::uint32_t(traits.denoised_history),
          std::uint32_t(traits.slope_history),
          &step,
          &last_level};
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  find_provided<heddle_sampler_desc>(HEDDLE_SAMPLERS, [&](const heddle_sampler_desc& desc) {
    names.emplace_back(desc.name);
    return false;
  });
  return names;
}

}  // namespace

const heddle_list* Samplers::list() {
  static const std::vector<heddle_sampler_desc> descs = [] {
    std::vector<heddle_sampler_desc> all;
    for (const SamplerTraits& traits : sampler_traits()) all.push_back(desc_of(traits));
    return all;
  }();
  static const std::vector<const void*> items = [] {
    std::vector<const void*> all;
    for (const heddle_sampler_desc& desc : descs) all.push_back(&desc);
    return all;
  }();
  static const heddle_list list{std::uint32_t(items.size()), items.data()};
  return &list;
}

const heddle_sampler_desc& sampler_named(const std::string& name) {
  const auto* found = find_provided<heddle_sampler_desc>(
      HEDDLE_SAMPLERS, [&](const heddle_sampler_desc& desc) { return name == desc.name; });
  if (found != nullptr) return *found;
  std::string there;
  for (const std::string& known : all_names()) there += (there.empty() ? "" : ", ") + known;
  throw Error(HEDDLE_NOT_FOUND, "there is no sampler '" + name + "'. Choose one of: " + there);
}

heddle_sampler_run sampler_run(const SamplerChoice& choice, const Sigmas& sigmas, bool flow) {
  return {sizeof(heddle_sampler_run),   flow ? 1 : 0, choice.eta, choice.noise_factor,
          std::uint32_t(sigmas.size()), sigmas.data()};
}

SamplerPlan plan_run(const heddle_sampler_desc& sampler, const heddle_sampler_run& run) {
  SamplerPlan plan;
  for (std::uint32_t i = 0; i + 1 < run.sigma_count; ++i) {
    auto& evaluations = plan.emplace_back();
    const auto emit = [](void* to, const heddle_sampler_evaluation* evaluation) {
      heddle_sampler_evaluation copy{};
      const std::size_t bytes = std::min<std::size_t>(evaluation->size, sizeof copy);
      std::copy_n(reinterpret_cast<const char*>(evaluation), bytes, reinterpret_cast<char*>(&copy));
      static_cast<SamplerPlan::value_type*>(to)->push_back(copy);
    };
    check(sampler.step(services.host, &sampler, &run, i, emit, &evaluations));
  }
  return plan;
}

double final_sigma(const heddle_sampler_desc& sampler, const heddle_sampler_run& run) {
  return sampler.final_sigma != nullptr ? sampler.final_sigma(&sampler, &run)
                                        : double(run.sigmas[run.sigma_count - 1]);
}

}  // namespace heddle::samplers
