#include "stretches.h"

#include <algorithm>
#include <map>

namespace heddle::samplers {

std::vector<Stretch> stretches_of(const ScopedLists& lists, const GuidePlan& plan,
                                  HookStrengths& hooks, std::span<const double> sigmas) {
  std::vector<Stretch> stretches;
  for (std::size_t k = 0; k < sigmas.size(); ++k) {
    Stretch now{.begin = k,
                .count = 1,
                .needed = plan.needed_at(sigmas[k]),
                .models = plan.models_at(sigmas[k]),
                .entries = {},
                .weights = {},
                .controls = {}};
    for (std::size_t list = 0; list < lists.size(); ++list)
      if (!now.needed[list]) now.models[list] = 0;
    now.entries.resize(lists.size());
    now.weights.resize(lists.size());
    now.controls.resize(lists.size());
    for (std::size_t list = 0; list < lists.size(); ++list) {
      if (!now.needed[list]) continue;
      for (std::size_t i = 0; i < lists[list].size(); ++i) {
        const CondScope& scope = lists[list][i].scope;
        if (!scope.counts_at(sigmas[k])) continue;
        now.entries[list].push_back(i);
        now.weights[list].push_back(hooks.weights_at(scope.hooks, sigmas[k]));
        now.controls[list].push_back(scope.controls_at(sigmas[k]));
      }
    }
    const bool goes_on =
        !stretches.empty() && stretches.back().needed == now.needed &&
        stretches.back().models == now.models && stretches.back().entries == now.entries &&
        stretches.back().weights == now.weights && stretches.back().controls == now.controls;
    if (goes_on)
      ++stretches.back().count;
    else
      stretches.push_back(std::move(now));
  }
  return stretches;
}

void archive_set(StateArchive& state, const std::string& name, ModelSet& set) {
  state(name + "list", set.list);
  state(name + "item", set.item);
  state(name + "weights", set.weights);
  bool has_box = set.box.has_value();
  state(name + "has_box", has_box);
  if (has_box && !set.box) set.box.emplace();
  if (has_box) state(name + "size", set.box->size);
  if (has_box) state(name + "begin", set.box->begin);
  state(name + "window", set.window);
  state(name + "places", set.places);
}

Shape point_of(Shape latent, const std::optional<Box>& box) {
  if (box) std::ranges::copy(box->size, latent.begin() + 2);
  return latent;
}

ModelSet set_of(const ScopedEntry& entry, std::size_t weights, const Shape& grid) {
  ModelSet set{.list = entry.list, .item = entry.item, .weights = weights, .box = {}};
  if (entry.scope.area) set.box = clamped(*entry.scope.area, grid);
  // The whole grid is everywhere.
  if (set.box && set.box->size == grid) set.box.reset();
  return set;
}

std::vector<ModelCall> calls_of(const Stretch& stretch, const std::vector<ModelSet>& sets) {
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> by_weights;
  for (std::size_t set = 0; set < sets.size(); ++set)
    by_weights[{stretch.models[sets[set].list], sets[set].weights}].push_back(set);
  std::vector<ModelCall> calls;
  for (auto& [which, places] : by_weights)
    calls.push_back({which.first, which.second, std::move(places), false});
  return calls;
}

std::size_t index_of(std::vector<ModelSet>& sets, const ModelSet& set) {
  const auto found = std::ranges::find(sets, set);
  if (found != sets.end()) return std::size_t(found - sets.begin());
  sets.push_back(set);
  return sets.size() - 1;
}

}  // namespace heddle::samplers
