#include "sampler_kind.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>

#include "user_error.h"

namespace heddle::samplers {
namespace {

using Emit = void (*)(void*, const heddle_sampler_evaluation*);

heddle_sampler_sum view_of(const Combination& from) {
  return {from.data(), std::uint32_t(from.size())};
}

void hand_out(const std::vector<Evaluation>& evaluations, Emit emit, void* to) {
  for (const Evaluation& from : evaluations) {
    const heddle_sampler_evaluation out{sizeof(heddle_sampler_evaluation),
                                        from.after,
                                        from.sigma,
                                        view_of(from.next),
                                        view_of(from.start),
                                        from.noise_from,
                                        from.noise_to,
                                        from.noise_clip};
    emit(to, &out);
  }
}

heddle_status* step(const heddle_host*, const heddle_sampler_desc* self,
                    const heddle_sampler_run* run, std::uint32_t index, Emit emit, void* to) {
  return guard([&] {
    hand_out(with_user_errors([&] { return sampler_step(*find_sampler(self->name), *run, index); }),
             emit, to);
  });
}

heddle_status* attempt(const heddle_host*, const heddle_sampler_desc* self,
                       const heddle_sampler_run* run, heddle_sampler_attempt* state, Emit emit,
                       void* to) {
  return guard([&] {
    hand_out(
        with_user_errors([&] { return sampler_attempt(*find_sampler(self->name), *run, *state); }),
        emit, to);
  });
}

double last_level(const heddle_sampler_desc* self, const heddle_sampler_run* run) {
  return final_sigma(*find_sampler(self->name), *run);
}

heddle_sampler_desc desc_of(const SamplerMethod& method,
                            const heddle_sampler_option_desc* const* options) {
  return {sizeof(heddle_sampler_desc),
          method.name,
          "",
          method.flags,
          method.step == nullptr ? nullptr : &step,
          &last_level,
          method.attempt == nullptr ? nullptr : &attempt,
          options};
}

// "0.5", "inf"
std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  find_provided<heddle_sampler_desc>(HEDDLE_SAMPLERS, [&](const heddle_sampler_desc& desc) {
    names.emplace_back(desc.name);
    return false;
  });
  return names;
}

Combination copy_of(const heddle_sampler_sum& sum) { return {sum.terms, sum.terms + sum.count}; }

// Takes a std::vector<Evaluation>. One without its size has no level.
void take(void* to, const heddle_sampler_evaluation* given) {
  heddle_sampler_evaluation copy{};
  copy.sigma = std::numeric_limits<double>::quiet_NaN();
  const std::size_t bytes = std::min<std::size_t>(given->size, sizeof copy);
  std::copy_n(reinterpret_cast<const char*>(given), bytes, reinterpret_cast<char*>(&copy));
  static_cast<std::vector<Evaluation>*>(to)->push_back({.sigma = copy.sigma,
                                                        .next = copy_of(copy.next),
                                                        .after = copy.after,
                                                        .start = copy_of(copy.start),
                                                        .noise_from = copy.noise_from,
                                                        .noise_to = copy.noise_to,
                                                        .noise_clip = copy.noise_clip});
}

// Throws for what would draw another picture without a word, or blame the model.
void check_step(const heddle_sampler_desc& sampler, std::uint32_t step,
                const std::vector<Evaluation>& evaluations) {
  const auto refuse = [&](const std::string& why) {
    throw Error(HEDDLE_INVALID_ARGUMENT, "the sampler '" + std::string(sampler.name) + "', step " +
                                             std::to_string(step) + ": " + why);
  };
  const auto is_finite = [](const Combination& sum) {
    return std::ranges::all_of(sum, [](const auto& term) { return std::isfinite(term.factor); });
  };
  for (const Evaluation& evaluation : evaluations) {
    if (!std::isfinite(evaluation.sigma))
      refuse("an evaluation has no level. Set its size and its sigma.");
    if (!is_finite(evaluation.next) || !is_finite(evaluation.start))
      refuse("a term of an evaluation at the level " + std::to_string(evaluation.sigma) +
             " has a factor that is no finite number.");
  }
}

}  // namespace

const heddle_list* Samplers::list() {
  static const auto options = [] {
    std::vector<std::vector<const heddle_sampler_option_desc*>> all;
    for (const SamplerMethod& method : sampler_methods()) {
      all.emplace_back();
      for (const heddle_sampler_option_desc& option : method.options) all.back().push_back(&option);
      all.back().push_back(nullptr);
    }
    return all;
  }();
  static const std::vector<heddle_sampler_desc> descs = [] {
    std::vector<heddle_sampler_desc> all;
    for (const SamplerMethod& method : sampler_methods())
      all.push_back(desc_of(method, options[all.size()].data()));
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

void check_options(const heddle_sampler_desc& sampler,
                   const std::vector<std::pair<std::string, double>>& options) {
  constexpr std::size_t kEnd = offsetof(heddle_sampler_desc, options) + sizeof sampler.options;
  if (sampler.size < kEnd || sampler.options == nullptr) return;
  const std::string whose = std::string("the sampler '") + sampler.name + "'";
  for (const auto& [name, value] : options) {
    std::string known;
    const heddle_sampler_option_desc* found = nullptr;
    for (auto at = sampler.options; *at != nullptr && found == nullptr; ++at) {
      if (name == (*at)->name) found = *at;
      known += (known.empty() ? "" : ", ") + std::string((*at)->name);
    }
    if (found == nullptr)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  whose + " has no option '" + name + "'. " +
                      (known.empty() ? "It has none: leave it out." : "Those it has: " + known));
    if (!(value >= found->least && value <= found->most))
      throw Error(HEDDLE_INVALID_ARGUMENT, "the option '" + name + "' of " + whose + " is " +
                                               number_text(value) + "; it ranges from " +
                                               number_text(found->least) + " to " +
                                               number_text(found->most));
  }
}

ToldRun::ToldRun(const SamplerChoice& choice, Sigmas sigmas, const NoiseLevels& levels, bool flow)
    : options_(choice.options), sigmas_(std::move(sigmas)) {
  for (const auto& [name, value] : options_) listed_.push_back({name.c_str(), value});
  const auto percent_to_sigma = [](const void* of, double percent) {
    return static_cast<const NoiseLevels*>(of)->percent_to_sigma(percent);
  };
  run_ = {sizeof(heddle_sampler_run),
          flow ? 1 : 0,
          choice.eta,
          choice.noise_factor,
          std::uint32_t(sigmas_.size()),
          std::uint32_t(listed_.size()),
          sigmas_.data(),
          listed_.data(),
          &levels,
          percent_to_sigma};
}

SamplerPlan plan_run(const heddle_sampler_desc& sampler, const heddle_sampler_run& run) {
  SamplerPlan plan;
  for (std::uint32_t i = 0; i + 1 < run.sigma_count; ++i) {
    std::vector<Evaluation>& evaluations = plan.emplace_back();
    check(sampler.step(services.host, &sampler, &run, i, &take, &evaluations));
    check_step(sampler, i, evaluations);
    for (Evaluation& evaluation : evaluations) {
      if (evaluation.noise_from != 0.0f || evaluation.noise_to != 0.0f) continue;
      evaluation.noise_from = run.sigmas[i];
      evaluation.noise_to = run.sigmas[i + 1];
    }
  }
  return plan;
}

std::vector<Evaluation> next_attempt(const heddle_sampler_desc& sampler,
                                     const heddle_sampler_run& run, heddle_sampler_attempt& state) {
  std::vector<Evaluation> evaluations;
  check(sampler.attempt(services.host, &sampler, &run, &state, &take, &evaluations));
  return evaluations;
}

double final_sigma(const heddle_sampler_desc& sampler, const heddle_sampler_run& run) {
  return sampler.final_sigma != nullptr ? sampler.final_sigma(&sampler, &run)
                                        : double(run.sigmas[run.sigma_count - 1]);
}

}  // namespace heddle::samplers
