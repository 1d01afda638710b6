#include "schedule_kind.h"

#include <heddle/checked.hpp>

#include "user_error.h"

namespace heddle::samplers {
namespace {

const NoiseLevels& levels_at(const void* self) { return *static_cast<const NoiseLevels*>(self); }

heddle_noise_levels view_of(const ModelSampling& sampling) {
  const NoiseLevels& levels = sampling.levels;
  return {
      sizeof(heddle_noise_levels),
      std::uint32_t(levels.sigmas().size()),
      sampling.recipe.table.c_str(),
      sampling.recipe.shift,
      sampling.recipe.multiplier,
      levels.sigmas().data(),
      &levels,
      [](const void* self, float sigma) { return levels_at(self).timestep(sigma); },
      [](const void* self, float timestep) { return levels_at(self).sigma(timestep); },
      [](const void* self, double percent) { return levels_at(self).percent_to_sigma(percent); }};
}

// Goes by the recipe: the levels may be described by another plugin than this one.
heddle_status* make(const heddle_host*, const heddle_noise_schedule_desc* self,
                    const heddle_noise_levels* levels, std::uint32_t steps,
                    void (*push)(void*, float), void* to) {
  return guard([&] {
    const NoiseLevels own = make_levels({levels->table, levels->shift, levels->multiplier});
    const Sigmas sigmas = with_user_errors([&] {
      return make_sigmas(*find_noise_schedule(self->name), own, checked_cast<int>(steps, "steps"));
    });
    for (const float sigma : sigmas) push(to, sigma);
  });
}

const heddle_noise_schedule_desc& desc_named(const std::string& name) {
  std::string there;
  const auto* found = find_provided<heddle_noise_schedule_desc>(
      HEDDLE_NOISE_SCHEDULES, [&](const heddle_noise_schedule_desc& desc) {
        there += (there.empty() ? "" : ", ") + std::string(desc.name);
        return name == desc.name;
      });
  if (found != nullptr) return *found;
  throw Error(HEDDLE_NOT_FOUND,
              "there is no noise schedule '" + name + "'. Choose one of: " + there);
}

}  // namespace

const heddle_list* NoiseSchedules::list() {
  static const std::vector<heddle_noise_schedule_desc> descs = [] {
    std::vector<heddle_noise_schedule_desc> all;
    for (const std::string_view name : noise_schedule_names())  // literals: they end in NUL
      all.push_back({sizeof(heddle_noise_schedule_desc), name.data(), "", &make});
    return all;
  }();
  static const std::vector<const void*> items = [] {
    std::vector<const void*> all;
    for (const heddle_noise_schedule_desc& desc : descs) all.push_back(&desc);
    return all;
  }();
  static const heddle_list list{std::uint32_t(items.size()), items.data()};
  return &list;
}

WholeSchedule schedule_named(const std::string& name, const ModelSampling& sampling) {
  const heddle_noise_schedule_desc& desc = desc_named(name);
  return [&desc, &sampling](int steps) {
    const heddle_noise_levels levels = view_of(sampling);
    Sigmas sigmas;
    const auto push = [](void* to, float sigma) { static_cast<Sigmas*>(to)->push_back(sigma); };
    check(desc.make(services.host, &desc, &levels, checked_cast<std::uint32_t>(steps, "steps"),
                    push, &sigmas));
    return sigmas;
  };
}

}  // namespace heddle::samplers
