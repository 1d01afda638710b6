#include "window_stretches.h"

#include <algorithm>

#include "concat_input.h"
#include "conditioning.h"
#include "sound_video_input.h"

namespace heddle::samplers {

bool reads_by_places(const WindowRule& rule, const GuidePlan& plan) {
  return rule.dim == 0 || rule.split_conds ||
         std::ranges::any_of(plan.models(), [&](const AskedModel& asked) {
           const Value settings = model_settings(asked.model);
           return concat_layout(settings).has_value() || settings.has("vace_channels") ||
                  settings.has("camera_numbers") || settings.has("reference_frame") ||
                  settings.has("reads_poses") || settings.has(kHeardStates) ||
                  (rule.dim == kFramesAxis && model_takes(asked.model, kFrameNoise));
         });
}

std::vector<Stretch> cut_by_windows(const std::vector<Stretch>& stretches,
                                    const std::vector<std::uint64_t>& steps,
                                    WindowSchedule& schedule, bool by_places) {
  const auto alike = [&](std::uint64_t a, std::uint64_t b) {
    return by_places ? schedule.same_places(a, b) : schedule.same_sizes(a, b);
  };
  std::vector<Stretch> parts;
  for (const Stretch& stretch : stretches) {
    for (std::size_t k = stretch.begin; k < stretch.begin + stretch.count; ++k) {
      if (k > stretch.begin && alike(steps[k - 1], steps[k])) {
        ++parts.back().count;
        continue;
      }
      parts.push_back(stretch);
      parts.back().begin = k;
      parts.back().count = 1;
    }
  }
  return parts;
}

Stretch in_window(Stretch stretch, const ScopedLists& lists, const WindowSchedule& schedule,
                  const ContextWindow& window) {
  if (!schedule.rule().split_conds) return stretch;
  for (std::size_t list = 0; list < lists.size(); ++list) {
    if (lists[list].size() < 2) continue;
    const std::size_t wanted = window.region(schedule.full(), lists[list].size());
    std::vector<std::size_t>&entries = stretch.entries[list], &weights = stretch.weights[list];
    for (std::size_t k = entries.size(); k-- > 0;) {
      if (entries[k] == wanted) continue;
      entries.erase(entries.begin() + std::ptrdiff_t(k));
      weights.erase(weights.begin() + std::ptrdiff_t(k));
    }
  }
  return stretch;
}

void check_scope(const CondScope& scope, const WindowRule& rule) {
  if (rule.dim < 2 || scope.counts_everywhere()) return;
  throw Error(HEDDLE_UNSUPPORTED,
              "context windows lie along dim " + std::to_string(rule.dim) +
                  ", and a conditioning counts in an area or by a mask, which lies on the whole "
                  "picture. Take away ConditioningSetArea or ConditioningSetMask, or let "
                  "split_conds_to_windows divide several conditionings among the windows.");
}

}  // namespace heddle::samplers
