#include "hook_strengths.h"

#include <algorithm>

namespace heddle::samplers {

std::size_t HookStrengths::weights_at(const std::vector<blocks::WeightHook>& hooks, double sigma) {
  std::vector<Changed> changes;
  for (const blocks::WeightHook& hook : hooks) {
    const double strength = hook.strength_model * strength_at(hook, sigma);
    if (strength != 0.0) changes.push_back({hook, strength});
  }
  if (changes.empty()) return 0;
  const auto same = [&](const std::vector<Changed>& known) {
    return std::ranges::equal(known, changes, [](const Changed& a, const Changed& b) {
      return a.hook.id == b.hook.id && a.strength == b.strength;
    });
  };
  const auto found = std::ranges::find_if(weights_, same);
  const auto index = std::size_t(found - weights_.begin());
  if (found == weights_.end()) weights_.push_back(std::move(changes));
  return index + 1;
}

const Value& HookStrengths::model(std::size_t number, const Value& own, std::size_t weights) {
  Value& made = models_[{number, weights}];
  if (made) return made;
  Value model = own;
  if (weights > 0)
    for (const Changed& change : weights_[weights - 1])
      model = blocks::hooked_model(model, change.hook, nullptr, change.strength);
  made = std::move(model);
  return made;
}

double HookStrengths::strength_at(const blocks::WeightHook& hook, double sigma) {
  if (hook.keyframes.empty()) return 1.0;
  Clock& clock = clocks_[hook.clock];
  const auto level = float(sigma);
  if (clock.level != level) {
    if (clock.evaluations >= guaranteed(hook.keyframes[clock.keyframe]))
      advance(clock, hook.keyframes, level);
    ++clock.evaluations;
    clock.level = level;
  }
  return hook.keyframes[clock.keyframe].strength;
}

// To the last keyframe that has begun, or the first among them that is guaranteed evaluations.
void HookStrengths::advance(Clock& clock, const Keyframes& keyframes, float level) const {
  for (std::size_t next = clock.keyframe + 1; next < keyframes.size(); ++next) {
    if (level_of(keyframes[next]) < level) return;
    clock.keyframe = next;
    clock.evaluations = 0;
    if (guaranteed(keyframes[next]) > 0) return;
  }
}

// ComfyUI compares in single precision.
float HookStrengths::level_of(const blocks::HookKeyframe& keyframe) const {
  return float(levels_.percent_to_sigma(keyframe.start));
}

// Of a keyframe from before the run, none.
std::int64_t HookStrengths::guaranteed(const blocks::HookKeyframe& keyframe) const {
  return level_of(keyframe) > float(highest_) ? 0 : keyframe.guaranteed;
}

}  // namespace heddle::samplers
