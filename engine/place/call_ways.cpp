#include "engine/place/call_ways.h"

#include <algorithm>
#include <numeric>

#include "engine/base/text.h"
#include "engine/place/call_memory.h"
#include "engine/place/device_choice.h"
#include "engine/place/unequal_layers.h"
#include "engine/program/partition.h"

namespace heddle::engine {

namespace {

constexpr int kPartitionTries = 12;     // until every range finds room
constexpr std::size_t kSetsAhead = 64;  // for calls that are not known yet

}  // namespace

const CallLoad& CallWays::load() const {
  if (is_known()) return case_.load(first_);
  if (!weights_) weights_ = weight_load(request_.model, topology_.devices[first_].compute);
  return *weights_;
}

std::size_t CallWays::set_count() const { return is_known() ? load().set_count : kSetsAhead; }

std::string CallWays::over(ParallelMode mode, const CallPlacement& placement) const {
  const std::string items =
      is_known() && has(mode, ParallelMode::data)
          ? cat(" (", join(shard_sizes(load().batch, placement.item_fractions), " + "), ")")
          : "";
  return cat(parallel_name(mode), " over ", device_names(placement.devices, topology_), items);
}

void CallWays::add(CallPlacement placement, std::string name, bool streamed) {
  CallWay way{std::move(placement), {}};
  Alternative& alternative = way.alternative;
  alternative.name = std::move(name);
  alternative.streamed = streamed;
  if (is_known()) {
    const CallEstimate now =
        streamed ? estimate_streamed(case_, way.placement) : estimate(case_, way.placement);
    alternative.load_seconds = now.load_seconds;
    alternative.seconds = now.seconds;
    alternative.step_seconds = now.step_seconds;
    alternative.needs = now.needs;
    alternative.fits = now.fits();
  }
  // Devices of several types compute other bytes than each of them.
  const std::vector<std::uint32_t>& devices = way.placement.devices;
  if (has(way.placement.parallel, ParallelMode::layers) &&
      std::ranges::any_of(devices, [&](std::uint32_t d) {
        return topology_.devices[d].compute != topology_.devices[devices.front()].compute;
      })) {
    alternative.automatic = false;
    alternative.note = "the devices compute in different types, so only by a hint";
  }
  if (has(way.placement.parallel, kRanksExchange)) {
    alternative.rounds = true;
    alternative.automatic = request_.fidelity == Fidelity::rounding;
    alternative.note = alternative.automatic
                           ? "changes the rounding"
                           : "changes the rounding, so only by \"parallel\" or --fidelity rounding";
    if (has(way.placement.parallel, ParallelMode::tensor) && load().whole_weights > 0)
      alternative.note += cat("; ", load().whole_weights, " of ", load().weights, " weights (",
                              format_bytes(load().whole_bytes),
                              ") stay whole: not 2-D, a side under 256, or not for dividing");
  }
  ways_.push_back(std::move(way));
}

// The same way with weights that pass through, where they find no room to stay.
void CallWays::stream(std::size_t resident, std::string name) {
  const CallWay& way = ways_[resident];
  if (!is_known() || way.alternative.fits || !can_stream(way.placement)) return;
  for (const std::uint32_t d : way.placement.devices)
    if (!has_limit(topology_.devices[d])) return;
  CallPlacement placement = way.placement;
  add(std::move(placement), std::move(name), true);
}

void CallWays::stream_last() {
  stream(ways_.size() - 1, cat(ways_.back().alternative.name, ", streamed"));
}

void CallWays::add_resident(std::uint32_t device) {
  CallPlacement placement;
  placement.devices = {device};
  add(std::move(placement), cat("resident on ", device_name(device, topology_)));
}

void CallWays::add_alone(const std::vector<std::uint32_t>& devices) {
  const std::size_t first = ways_.size();
  for (const std::uint32_t d : devices) add_resident(d);
  for (std::size_t i = 0; i < devices.size(); ++i)
    stream(first + i, cat("streamed on ", device_name(devices[i], topology_)));
}

void CallWays::add_blocks(const std::vector<std::uint32_t>& of_block) {
  CallPlacement placement;
  placement.parallel = ParallelMode::layers;
  placement.of_block.assign(of_block.size(), 0);
  for (const NodeIndex n : case_.graph.order) {
    const auto at = std::ranges::find(placement.devices, of_block[n]);
    placement.of_block[n] = std::uint32_t(at - placement.devices.begin());
    if (at == placement.devices.end()) placement.devices.push_back(of_block[n]);
  }
  std::string name = over(ParallelMode::layers, placement);
  add(std::move(placement), std::move(name));
  stream_last();
}

// Activations take their room first; weights are spread over what is left.
std::vector<double> CallWays::room_for_weights(const std::vector<std::uint32_t>& devices) const {
  if (is_known()) return bytes_for_weights(case_, devices);
  std::vector<double> bytes;
  for (const std::uint32_t d : devices)
    bytes.push_back(std::max(double(usable_bytes(topology_.devices[d])), 1.0));
  return bytes;
}

// `fractions`: of the weights, by rank. Whole groups of blocks seldom match them, so a device that
// is short gets less.
void CallWays::divide_layers(std::vector<double>& fractions, CallPlacement& placement) const {
  placement.of_block = partition(case_.graph, load(), fractions);
  std::vector<double> less;  // of its fraction, by rank
  for (int i = 0; is_known() && i < kPartitionTries; ++i) {
    if (less.empty()) {
      less.assign(fractions.size(), 1);
      bool fits = true;
      const std::vector<CallMemory> memory = whole_memory(case_, placement);
      for (std::size_t d = 0; d < memory.size(); ++d) {
        const DeviceNeed& need = memory[d].need;
        if (need.wanted_bytes <= need.there_bytes) continue;
        fits = false;
        double& rank = less[d % less.size()];
        rank = std::min(rank, 0.9 * double(need.there_bytes) / double(need.wanted_bytes) + 0.05);
      }
      if (fits) return;
    }
    for (std::size_t rank = 0; rank < less.size(); ++rank) fractions[rank] *= less[rank];
    std::vector<std::uint32_t> next = partition(case_.graph, load(), fractions);
    if (next == placement.of_block) continue;
    placement.of_block = std::move(next);
    less.clear();
  }
}

void CallWays::add_layers(const std::vector<std::uint32_t>& devices) {
  std::vector<double> fractions = room_for_weights(devices);
  CallPlacement placement;
  placement.parallel = ParallelMode::layers;
  placement.devices = devices;
  divide_layers(fractions, placement);
  std::string name = over(ParallelMode::layers, placement);
  add(std::move(placement), std::move(name));
  stream_last();
  if (devices.size() == 2 && is_known()) add_folded(devices, fractions);
}

void CallWays::add_folded(const std::vector<std::uint32_t>& devices,
                          const std::vector<double>& fractions) {
  auto folded = partition_folded(case_.graph, load(), fractions[0] / (fractions[0] + fractions[1]));
  if (!folded) return;
  CallPlacement placement;
  placement.parallel = ParallelMode::layers;
  placement.devices = devices;
  placement.of_block = std::move(*folded);
  std::string name = cat(over(ParallelMode::layers, placement), ", folded");
  add(std::move(placement), std::move(name));
}

void CallWays::add_unequal_layers(const std::vector<std::uint32_t>& devices) {
  const std::size_t before = ways_.size();
  for (LayersWay& way : unequal_layers(case_, devices)) {
    const std::string name = over(ParallelMode::layers, way.placement);
    add(std::move(way.placement), way.streamed ? cat(name, ", streamed") : name, way.streamed);
  }
  if (ways_.size() == before) return add_layers(devices);  // says what is lacking
  const std::vector<std::uint32_t> two = first_devices(devices, 2, topology_);
  add_folded(two, room_for_weights(two));
}

void CallWays::add_sets(const std::vector<std::uint32_t>& devices) {
  const auto shares = std::uint32_t(std::min(devices.size(), set_count()));
  add_combined(ParallelMode::cfg, {.set_shares = shares},
               {devices.begin(), devices.begin() + std::ptrdiff_t(shares)});
}

void CallWays::add_items(const std::vector<std::uint32_t>& devices) {
  add_combined(ParallelMode::data, {.item_shares = std::uint32_t(devices.size())}, devices);
}

void CallWays::add_exchanging(ParallelMode mode, const std::vector<std::uint32_t>& devices) {
  add_combined(mode, {.ranks = std::uint32_t(devices.size())}, devices);
}

double CallWays::seconds_alone(std::uint32_t device) const {
  const auto [known, is_new] = seconds_alone_.try_emplace(device, 0);
  if (is_new) known->second = estimate_alone(case_, device).seconds;
  return known->second;
}

// How much of the work each `ranks` of them do in the same time.
std::vector<double> CallWays::speeds(const std::vector<std::uint32_t>& devices,
                                     std::uint32_t ranks) const {
  std::vector<double> fractions(devices.size() / ranks, 0);
  for (std::size_t i = 0; i < fractions.size() * ranks; ++i)
    fractions[i / ranks] += is_known() ? 1 / std::max(seconds_alone(devices[i]), 1e-12) : 1;
  const double all = std::accumulate(fractions.begin(), fractions.end(), 0.0);
  for (double& fraction : fractions) fraction /= all;
  return fractions;
}

void CallWays::add_combined(ParallelMode mode, const GroupSizes& sizes,
                            const std::vector<std::uint32_t>& devices) {
  CallPlacement placement;
  placement.parallel = mode;
  placement.devices = devices;
  const std::vector<std::uint32_t> group(devices.begin(), devices.begin() + sizes.ranks);
  if (has(mode, ParallelMode::cfg))
    for (std::size_t set = 0; set < set_count(); ++set)
      placement.of_set.push_back(std::uint32_t(set % sizes.set_shares));
  if (has(mode, ParallelMode::data))
    placement.item_fractions =
        speeds({devices.begin(), devices.begin() + std::ptrdiff_t(sizes.item_shares) * sizes.ranks},
               sizes.ranks);
  if (has(mode, kRanksExchange)) placement.rank_fractions = speeds(group, 1);
  if (has(mode, ParallelMode::layers) && is_known() && !all_alike(group, request_.prices)) {
    // The order and the cuts of one group are those of all.
    for (const LayersWay& way : unequal_layers(case_, group)) {
      CallPlacement as_one = placement;
      as_one.devices.clear();
      as_one.of_block = way.placement.of_block;
      for (std::uint32_t first = 0; first < devices.size(); first += sizes.ranks)
        for (const std::uint32_t d : way.placement.devices)
          as_one.devices.push_back(
              devices[first + std::uint32_t(std::ranges::find(group, d) - group.begin())]);
      const std::string name = over(mode, as_one);
      add(std::move(as_one), way.streamed ? cat(name, ", streamed") : name, way.streamed);
    }
    return;
  }
  if (has(mode, ParallelMode::layers)) {
    std::vector<double> fractions = room_for_weights(group);
    divide_layers(fractions, placement);
  }
  std::string name = over(mode, placement);
  add(std::move(placement), std::move(name));
  stream_last();
}

double CallWays::compared_load_seconds(const CallWay& way) const {
  double alone = 0;
  for (const CallWay& other : ways_)
    if (other.placement.devices.size() == 1 && other.alternative.automatic)
      alone = std::max(alone, other.alternative.load_seconds);
  return std::max(alone, way.alternative.load_seconds);
}

void CallWays::keep_best(std::size_t from, bool keeps_one) {
  if (ways_.size() == from) return;
  std::size_t best = ways_.size() - 1;
  for (std::size_t w = from; w < ways_.size(); ++w)
    if (ways_[w].alternative.fits &&
        (!ways_[best].alternative.fits ||
         compared_seconds(ways_[w]) < kWorthIt * compared_seconds(ways_[best])))
      best = w;
  CallWay kept = std::move(ways_[best]);
  ways_.resize(from);
  const bool gains =
      kept.alternative.fits && std::ranges::none_of(ways_, [&](const CallWay& way) {
        const Alternative& other = way.alternative;
        const bool may_be_taken =
            other.fits && (other.rounds ? kept.alternative.rounds : other.automatic);
        return may_be_taken && compared_seconds(kept) >= kWorthIt * compared_seconds(way);
      });
  if (gains || keeps_one) ways_.push_back(std::move(kept));
}

}  // namespace heddle::engine
