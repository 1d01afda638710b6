// plugins/vae/pose_ranges.h - the steps of a run that follow poses: entries of a conditioning apart
// by them, also by shapes. One call's thread.
#pragma once

#include <algorithm>
#include <vector>

#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {

// A share of the steps, and whether they follow poses.
struct PoseRange {
  double begin, end;
  bool follows;
};
// From `begin` to `end`, and those before and behind; without poses all steps follow none.
std::vector<PoseRange> pose_ranges(double begin, double end, bool has_poses);

// Calls visit(scope with the steps of both, follows) for each range of an entry's steps.
template <class Visit>
void each_pose_range(const Value& scope, const std::vector<PoseRange>& ranges, Visit&& visit) {
  if (ranges.size() == 1) return visit(scope, ranges[0].follows);
  for (const PoseRange& range : ranges) {
    const double begin = std::max(range.begin, scope.get<double>("start_percent", 0)),
                 end = std::min(range.end, scope.get<double>("end_percent", 1));
    if (begin >= end) continue;
    Record record = scope.is(HEDDLE_KIND_RECORD) ? Record(scope) : Record();
    visit(record.set("start_percent", value_of(begin)).set("end_percent", value_of(end)).value(),
          range.follows);
  }
}

// Every entry once for each range, with the fields of poses where the range follows them.
Value in_pose_ranges(const Value& conditioning, const std::vector<PoseRange>& ranges,
                     const GivenFields& poses);

}  // namespace heddle::vae
