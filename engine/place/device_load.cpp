#include "engine/place/device_load.h"

#include <algorithm>
#include <utility>

namespace heddle::engine {

bool is_beside_others(const DeviceLoad& load) {
  return load.among_many ||
         std::ranges::any_of(load.busy_seconds, [](double seconds) { return seconds > 0; });
}

void add_runs(std::span<const RunLoad> runs, DeviceLoad& device_load) {
  struct Staying {
    PlannedLoad load;
    double share_left = 0;
  };
  std::map<std::pair<Hash128, std::uint32_t>, Staying> staying;
  for (const RunLoad& run : runs) {
    for (std::size_t d = 0; d < run.busy_seconds.size(); ++d)
      device_load.busy_seconds[d] += run.busy_seconds[d] * run.share_left;
    for (const PlannedLoad& load : run.loads) {
      if (load.bytes == 0) {
        device_load.busy_seconds[load.device] += load.seconds * run.share_left;
        continue;
      }
      Staying& one = staying.try_emplace({load.model, load.device}, Staying{load}).first->second;
      if (load.bytes > one.load.bytes) one.load = load;
      one.share_left = std::max(one.share_left, run.share_left);
    }
  }
  for (const auto& [key, one] : staying) {
    const PlannedLoad& load = one.load;
    if (one.share_left <= 0) continue;
    std::uint64_t& there = device_load.resident[load.device][load.model];
    if (there >= load.bytes) continue;
    device_load.busy_seconds[load.device] +=
        load.seconds * one.share_left * (1 - double(there) / double(load.bytes));
    there = load.bytes;
  }
}

}  // namespace heddle::engine
