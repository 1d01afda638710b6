#include "engine/session/staging_reserve.h"

#include <algorithm>

#include "engine/program/weight_sources.h"

namespace heddle::engine {

std::uint64_t largest_read(const Model& model) {
  std::uint64_t largest = 0;
  if (model.checkpoint == nullptr) return largest;
  for (const Node& node : model.graph->nodes)
    for (const auto& source : weight_sources(model, node)) {
      if (!source) continue;
      std::uint64_t bytes = 0;
      for (const FilePart& part : file_parts(*source)) bytes += part.bytes + 2 * page_bytes();
      largest = std::max(largest, bytes);
    }
  return largest;
}

StagingReserve staging_reserve(std::uint64_t largest, std::uint32_t device,
                               const Topology& topology, const Environment& environment) {
  if (environment.host_weights == nullptr) return {};
  const std::uint64_t budget = environment.host_ledger->budget();
  if (budget == Ledger::kNoLimit) return {};
  const auto share_of = [&](std::size_t d) -> std::uint64_t {
    const Ledger& ledger = environment.devices[d].state->ledger();
    if (ledger.parent() == nullptr) return 0;
    const std::uint64_t allowed = topology.devices[d].budget;
    return std::min({ledger.budget(), budget, allowed == 0 ? budget : allowed});
  };
  std::uint64_t shares = 0, most = 0, count = 0;  // count: of those that have the most
  for (std::size_t d = 0; d < environment.devices.size(); ++d) {
    const std::uint64_t share = share_of(d);
    shares += share;
    if (share == most) ++count;
    if (share > most) most = share, count = 1;
  }
  if (share_of(device) == 0 || share_of(device) < most) return {};
  const std::uint64_t left = budget - std::min(budget, shares);
  const auto from_each = [&](std::uint64_t bytes) {
    return (bytes - std::min(bytes, left) + count - 1) / count;
  };
  const std::uint64_t wanted = std::max(largest, std::min(4 * largest, budget / 4));
  return {from_each(largest), from_each(wanted)};
}

}  // namespace heddle::engine
