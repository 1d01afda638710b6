#include "engine/place/call_parts.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"

namespace heddle::engine {

namespace {

// "embed, double.0 to double.11": groups that follow each other are joined.
std::string ranges_of(const Graph& graph, const CallPlacement& placement, const CallLoad& load,
                      std::uint32_t rank) {
  std::vector<bool> is_here(load.groups.size(), false);
  for (const NodeIndex n : graph.order)
    is_here[load.blocks[n].group] = placement.of_block[n] == rank;
  std::vector<std::string> ranges;
  for (std::size_t g = 0; g < is_here.size(); ++g) {
    if (!is_here[g]) continue;
    const std::size_t first = g;
    while (g + 1 < is_here.size() && is_here[g + 1]) ++g;
    ranges.push_back(cat(load.groups[first], g == first ? "" : cat(" to ", load.groups[g])));
  }
  return ranges.empty() ? "nothing" : join(ranges, ", ");
}

std::string sets_of(const CallPlacement& placement, std::uint32_t share) {
  std::vector<std::size_t> sets;
  for (std::size_t set = 0; set < placement.of_set.size(); ++set)
    if (placement.of_set[set] == share) sets.push_back(set);
  return cat(sets.size() == 1 ? "branch " : "branches ", join(sets, ", "));
}

// `i`: of the placement's devices.
CallPart part_of(const Graph& graph, const CallPlacement& placement, const CallLoad& load,
                 std::uint32_t i) {
  CallPart part{placement.devices[i], "", load.weight_bytes};
  const ParallelMode mode = placement.parallel;
  const std::uint32_t rank = i % placement.ranks(), group = i / placement.ranks();
  std::vector<std::string> what;
  if (has(mode, ParallelMode::cfg) && load.set_count > 0)
    what.push_back(sets_of(placement, group / placement.item_shares()));
  if (has(mode, ParallelMode::data) && load.set_count > 0)
    what.push_back(
        cat(shard_sizes(load.batch, placement.item_fractions)[group % placement.item_shares()],
            " of ", load.batch, " items"));
  if (has(mode, ParallelMode::layers)) {
    what.push_back(ranges_of(graph, placement, load, rank));
    part.weight_bytes = 0;
    for (const NodeIndex n : graph.order)
      if (placement.of_block[n] == rank) part.weight_bytes += load.blocks[n].weight_bytes;
  }
  if (has(mode, kRanksExchange)) {
    const double fraction = placement.rank_fractions[rank];
    what.push_back(cat(std::lround(100 * fraction), "% of the ",
                       has(mode, ParallelMode::tensor) ? "rows" : "tokens"));
    part.weight_bytes = load.rank_bytes(mode & kRanksExchange, fraction, rank == 0);
  }
  part.what = what.empty() ? "all blocks" : join(what, ", ");
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

namespace {

// Of the alternatives that may be taken and for which this holds, the fastest once it is loaded.
template <class Is>
const Alternative* fastest_of(const std::vector<Alternative>& all, Is&& is) {
  const Alternative* best = nullptr;
  for (const Alternative& a : all)
    if (a.fits && a.automatic && is(a) && (best == nullptr || a.seconds < best->seconds)) best = &a;
  return best;
}

std::string percent(double part, double all) {
  return cat(std::lround(100 * part / std::max(all, 1e-12)), "%");
}

// How many percent more than `taken` the other takes.
std::string longer(const Alternative& taken, const Alternative& other) {
  if (other.seconds < 1.005 * taken.seconds) return cat(other.name, " gains too little");
  return cat(other.name, " takes ", percent(other.seconds - taken.seconds, taken.seconds),
             " longer");
}

std::string shares_text(const CallReport& report, std::uint64_t weight_bytes,
                        const Prices& prices) {
  double room = 0, speed = 0;
  const auto room_of = [&](const CallPart& part) {
    return double(usable_bytes(prices.topology().devices[part.device]));
  };
  const auto speed_of = [&](const CallPart& part) {
    return prices.rates(part.device).flops_per_second;
  };
  for (const CallPart& part : report.parts) room += room_of(part), speed += speed_of(part);
  std::vector<std::string> shares;
  for (const CallPart& part : report.parts)
    shares.push_back(
        cat(device_name(part.device, prices.topology()), " has ", percent(room_of(part), room),
            " of their room and ", percent(speed_of(part), speed), " of their speed and takes ",
            percent(double(part.weight_bytes), double(weight_bytes)), " of the weights"));
  return join(shares, ", ");
}

}  // namespace

std::string why_among_unequal(const CallReport& report, std::uint64_t weight_bytes,
                              const Prices& prices) {
  const auto taken = std::ranges::find_if(report.alternatives, &Alternative::chosen);
  const auto is_alone = [](const Alternative& a) { return a.needs.size() == 1; };
  if (taken == report.alternatives.end() || !taken->fits) return "";
  if (is_alone(*taken) && !taken->streamed) return "";
  const Alternative* const alone = fastest_of(
      report.alternatives, [&](const Alternative& a) { return is_alone(a) && !a.streamed; });
  const Alternative* const streamed =
      fastest_of(report.alternatives, [](const Alternative& a) { return a.streamed; });
  const Alternative* const together = fastest_of(
      report.alternatives, [&](const Alternative& a) { return !is_alone(a) && !a.streamed; });
  const std::string all_in_place =
      alone != nullptr ? longer(*taken, *alone)
                       : cat(format_bytes(weight_bytes), " of weights fit on no single device");
  std::string others;
  if (taken->streamed)
    others = together == nullptr ? "nor on several together"
                                 : cat(longer(*taken, *together), " with all of them in place");
  else if (streamed == nullptr)
    others = "they fit on these together";
  else
    others = cat("they fit on these together, and ", longer(*taken, *streamed));
  if (alone != nullptr && !taken->streamed && streamed == nullptr) others.clear();
  const std::string shares = shares_text(report, weight_bytes, prices);
  return cat(all_in_place, others.empty() ? "" : "; ", others, shares.empty() ? "" : "; ", shares);
}

}  // namespace heddle::engine
