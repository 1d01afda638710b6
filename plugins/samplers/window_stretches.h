// Evaluations whose model sees context windows, in stretches: a session's sets keep their shapes
// and what else the model reads. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "context_windows.h"
#include "stretches.h"

namespace heddle::samplers {

// Whether what the model reads besides the point is another where windows move.
bool reads_by_places(const WindowRule& rule, const GuidePlan& plan);

// Each stretch in parts whose windows have the same sizes, or, where the model reads by places, lie
// in the same places. `steps`: of each evaluation.
std::vector<Stretch> cut_by_windows(const std::vector<Stretch>& stretches,
                                    const std::vector<std::uint64_t>& steps,
                                    WindowSchedule& schedule, bool by_places);

// The stretch as a window sees it: of lists that are divided among windows, one entry.
Stretch in_window(Stretch stretch, const ScopedLists& lists, const WindowSchedule& schedule,
                  const ContextWindow& window);

// Throws where an entry counts in a part of the axis only, which windows do not keep to.
void check_scope(const CondScope& scope, const WindowRule& rule);

}  // namespace heddle::samplers
