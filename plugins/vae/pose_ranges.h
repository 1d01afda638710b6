// plugins/vae/pose_ranges.h - the steps of a run that follow poses: entries of a conditioning apart
// by them, also by shapes. Source: ComfyUI's conditioning_set_values_with_timestep_range(). One
// call's thread.
#pragma once

#include <algorithm>

#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {

// The share of the steps that follow poses: none where it is empty.
struct PoseRange {
  double begin = 0, end = 0;
};

// Calls visit(scope with the steps of both, follows) for the steps of an entry that follow poses,
// and for those before and behind. An entry counts at both ends of its steps, so those that follow
// none end before, and begin behind: at no level do two of them count.
template <class Visit>
void each_pose_range(const Value& scope, const PoseRange& range, Visit&& visit) {
  constexpr double kApart = 1e-5;
  const double first = scope.get<double>("start_percent", 0),
               last = scope.get<double>("end_percent", 1);
  const double begin = std::max(range.begin, first), end = std::min(range.end, last);
  if (begin >= end) return visit(scope, false);
  if (begin == first && end == last) return visit(scope, true);
  const auto part = [&](double from, double to, bool follows) {
    if (from > to) return;
    Record record = scope.is(HEDDLE_KIND_RECORD) ? Record(scope) : Record();
    visit(record.set("start_percent", value_of(from)).set("end_percent", value_of(to)).value(),
          follows);
  };
  if (begin > first) part(first, begin - kApart, false);
  part(begin, end, true);
  if (end < last) part(end + kApart, last, false);
}

// Every entry once for each part of its steps, with the fields of poses where it follows them.
Value in_pose_range(const Value& conditioning, const PoseRange& range, const GivenFields& poses);

}  // namespace heddle::vae
