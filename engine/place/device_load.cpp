#include "engine/place/device_load.h"

#include <algorithm>
#include <utility>

namespace heddle::engine {

void add_runs(std::span<const RunLoad> runs, DeviceLoad& device_load) {
  std::map<std::pair<Hash128, std::uint32_t>, PlannedLoad> staying;
  for (const RunLoad& run : runs) {
    for (std::size_t d = 0; d < run.busy_seconds.size(); ++d)
      device_load.busy_seconds[d] += run.busy_seconds[d] * run.share_left;
    for (const PlannedLoad& load : run.loads) {
      if (load.bytes == 0) {
        device_load.busy_seconds[load.device] += load.seconds * run.share_left;
        continue;
      }
      PlannedLoad& most = staying.try_emplace({load.model, load.device}, load).first->second;
      if (load.bytes > most.bytes) most = load;
    }
  }
  for (const auto& [key, load] : staying) {
    std::uint64_t& there = device_load.resident[load.device][load.model];
    if (there >= load.bytes) continue;
    device_load.busy_seconds[load.device] +=
        load.seconds * (1 - double(there) / double(load.bytes));
    there = load.bytes;
  }
}

}  // namespace heddle::engine
