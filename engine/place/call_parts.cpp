#include "engine/place/call_parts.h"

#include <cmath>

#include "engine/base/text.h"

namespace heddle::engine {

namespace {

// "embed, double.0 to double.11": groups that follow each other are joined.
std::string ranges_of(const Graph& graph, const CallPlacement& placement, const CallLoad& load,
                      std::uint32_t device) {
  std::vector<bool> is_here(load.groups.size(), false);
  for (const NodeIndex n : graph.order)
    is_here[load.blocks[n].group] = placement.of_block[n] == device;
  std::vector<std::string> ranges;
  for (std::size_t g = 0; g < is_here.size(); ++g) {
    if (!is_here[g]) continue;
    const std::size_t first = g;
    while (g + 1 < is_here.size() && is_here[g + 1]) ++g;
    ranges.push_back(cat(load.groups[first], g == first ? "" : cat(" to ", load.groups[g])));
  }
  return ranges.empty() ? "nothing" : join(ranges, ", ");
}

std::string sets_of(const CallPlacement& placement, std::uint32_t device) {
  std::vector<std::size_t> sets;
  for (std::size_t set = 0; set < placement.of_set.size(); ++set)
    if (placement.of_set[set] == device) sets.push_back(set);
  return cat(sets.size() == 1 ? "branch " : "branches ", join(sets, ", "));
}

// `i`: of the placement's devices.
CallPart part_of(const Graph& graph, const CallPlacement& placement, const CallLoad& load,
                 std::uint32_t i) {
  CallPart part{placement.devices[i], "all blocks", load.weight_bytes};
  const bool known = load.set_count > 0;
  switch (placement.parallel) {
    case ParallelMode::layers:
      part.what = ranges_of(graph, placement, load, i);
      part.weight_bytes = 0;
      for (const NodeIndex n : graph.order)
        if (placement.of_block[n] == i) part.weight_bytes += load.blocks[n].weight_bytes;
      break;
    case ParallelMode::cfg:
      if (known) part.what = sets_of(placement, i);
      break;
    case ParallelMode::data:
      if (known)
        part.what =
            cat(shard_sizes(load.batch, placement.fractions)[i], " of ", load.batch, " items");
      break;
    case ParallelMode::sequence:
    case ParallelMode::tensor:
      part.what = cat(std::lround(100 * placement.fractions[i]), "% of the ",
                      placement.parallel == ParallelMode::tensor ? "rows" : "tokens");
      part.weight_bytes = load.rank_bytes(placement.parallel, placement.fractions[i], i == 0);
      break;
    case ParallelMode::none:
      break;
  }
  return part;
}

}  // namespace

std::vector<CallPart> call_parts(const Graph& graph, const CallPlacement& placement,
                                 const std::function<const CallLoad&(std::uint32_t device)>& load) {
  std::vector<CallPart> parts;
  if (placement.devices.size() < 2) return parts;
  for (std::uint32_t i = 0; i < placement.devices.size(); ++i)
    parts.push_back(part_of(graph, placement, load(placement.devices[i]), i));
  return parts;
}

}  // namespace heddle::engine
