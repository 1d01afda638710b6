#include "plugins/vae/pose_ranges.h"

namespace heddle::vae {

std::vector<PoseRange> pose_ranges(double begin, double end, bool has_poses) {
  if (!has_poses || end <= begin) return {{0, 1, false}};
  std::vector<PoseRange> ranges;
  if (begin > 0) ranges.push_back({0, begin, false});
  ranges.push_back({begin, end, true});
  if (end < 1) ranges.push_back({end, 1, false});
  return ranges;
}

Value in_pose_ranges(const Value& conditioning, const std::vector<PoseRange>& ranges,
                     const GivenFields& poses) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < conditioning.count(); ++i)
    each_pose_range(conditioning.item(i), ranges, [&](const Value& entry, bool follows) {
      Record record(entry);
      if (follows)
        for (const auto& [name, value] : poses.set) record.set(name, value);
      entries.push_back(record.value());
    });
  return list_of(entries);
}

}  // namespace heddle::vae
