#include "plugins/vae/pose_ranges.h"

#include <vector>

namespace heddle::vae {

Value in_pose_range(const Value& conditioning, const PoseRange& range, const GivenFields& poses) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < conditioning.count(); ++i)
    each_pose_range(conditioning.item(i), range, [&](const Value& entry, bool follows) {
      Record record(entry);
      if (follows)
        for (const auto& [name, value] : poses.set) record.set(name, value);
      entries.push_back(record.value());
    });
  return list_of(entries);
}

}  // namespace heddle::vae
