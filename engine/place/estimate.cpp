#include "engine/place/estimate.h"

#include <algorithm>
#include <map>

#include "engine/place/call_memory.h"
#include "engine/place/estimate_shared.h"
#include "engine/place/link_clock.h"
#include "engine/place/placed_blocks.h"

namespace heddle::engine {

namespace {

// By device of the topology: the share of a step's time in which it computes. What runs once before
// the steps, and is little, is priced by it too.
using BusyShares = std::map<std::uint32_t, double>;

// What it takes of blocks that are whole, beside needs.
class Simulation {
 public:
  // Where no share is given, devices compute all the time.
  Simulation(const CallCase& call, const CallPlacement& placement, BusyShares busy = {})
      : call_(call),
        blocks_(call, placement),
        load_(blocks_.load()),
        busy_(std::move(busy)),
        finished_(blocks_.branch_count(), std::vector<double>(call.graph.nodes.size(), 0)),
        arrived_(call.graph, blocks_.branch_count()),
        links_(call.prices) {}

  CallEstimate run() {
    CallEstimate result;
    double once = 0;
    for (const Phase phase : {Phase::loop_invariant, Phase::precomputed})
      if (phase < load_.main) once += phase_seconds(phase);
    transfer_bytes_ = 0;
    const double step = phase_seconds(load_.main);
    result.transfer_bytes = transfer_bytes_;
    result.seconds = once + once_seconds_ + step * load_.repeats();
    result.step_seconds = step;
    return result;
  }

  // In a step of run().
  BusyShares busy_shares(double step_seconds) const {
    BusyShares fractions = computing_;
    for (auto& [device, fraction] : fractions) fraction /= std::max(step_seconds, 1e-12);
    return fractions;
  }

 private:
  double busy(std::uint32_t device) const {
    const auto at = busy_.find(device);
    return at == busy_.end() ? 1 : at->second;
  }

  // When a value is on a device; one copy serves all readers there.
  double arrival(const Source& source, std::uint32_t branch, std::uint32_t to, Phase reader) {
    const std::uint32_t from = blocks_.device_of(source, branch);
    const bool earlier =
        blocks_.phase_of(source) !=
        reader;  // made in an earlier phase: brought once, and there from the beginning
    const double made = source.node == kGraphInputs || earlier ? 0 : finished_[branch][source.node];
    if (from == to) return made;
    const auto [at, is_new] = arrived_.at(source, branch, to);
    if (!is_new) return at;
    const std::uint64_t bytes = blocks_.bytes_of(source, branch);
    if (bytes == 0) return at = made;  // as an optional input that is not given
    if (earlier) {
      once_seconds_ += call_.prices.transfer_seconds(from, to, bytes);
      return 0;
    }
    if (!links_.is_shared(from, to)) transfer_bytes_ += bytes;
    return at = links_.send(from, to, made, bytes);
  }

  double phase_seconds(Phase phase) {
    std::map<std::uint32_t, double> free_at;
    links_.reset();
    computing_.clear();
    double end = 0;
    for (const NodeIndex n : call_.graph.order) {
      if (load_.blocks[n].phase != phase) continue;
      for (std::uint32_t branch = 0; branch < blocks_.branch_count(); ++branch) {
        const std::uint32_t here = blocks_.device_of(n, branch);
        double& free = free_at[here];
        double begin = free;
        const Node& node = call_.graph.nodes[n];
        for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
          if (const auto* link = std::get_if<Source>(&node.inputs[i]);
              link != nullptr && (node.type->input(i).flags & HEDDLE_PORT_SHAPE) == 0)
            begin = std::max(begin, arrival(*link, branch, here, phase));
        const double seconds =
            work_seconds(call_, here, blocks_.work_of(n, branch), ParallelMode::none,
                         blocks_.fraction_of(phase, branch), busy(here));
        computing_[here] += seconds;
        free = begin + seconds;
        finished_[branch][n] = free;
        end = std::max(end, free);
      }
    }
    if (phase == load_.main)
      for (const GraphOutput& output : call_.graph.outputs)
        for (std::uint32_t branch = 0; branch < blocks_.branch_count(); ++branch)
          end = std::max(end, arrival(output.from, branch, call_.home, phase));
    return end;
  }

  const CallCase& call_;
  const PlacedBlocks blocks_;
  const CallLoad& load_;
  const BusyShares busy_;
  std::map<std::uint32_t, double> computing_;  // seconds of the last phase, by device
  std::vector<std::vector<double>> finished_;  // by branch and node
  CopyTable<double> arrived_;
  LinkClock links_;
  double once_seconds_ = 0;
  std::uint64_t transfer_bytes_ = 0;
};

void add_needs(const CallCase& call, const CallPlacement& placement, CallEstimate& result) {
  std::vector<CallMemory> memory = whole_memory(call, placement);
  for (const CallMemory& each : memory) {
    result.load_seconds =
        std::max(result.load_seconds,
                 call.prices.transfer_seconds(kHostSide, each.need.device, each.weight_bytes));
    result.needs.push_back(each.need);
  }
}

}  // namespace

bool CallEstimate::fits() const {
  return std::ranges::all_of(
      needs, [](const DeviceNeed& need) { return need.wanted_bytes <= need.there_bytes; });
}

CallEstimate estimate_whole(const CallCase& call, const CallPlacement& placement) {
  CallEstimate result = Simulation(call, placement).run();
  add_needs(call, placement, result);
  return result;
}

CallEstimate estimate_without_rest(const CallCase& call, const CallPlacement& placement) {
  return has(placement.parallel, kRanksExchange) ? estimate_shared(call, placement)
                                                 : estimate_whole(call, placement);
}

CallEstimate estimate_alone(const CallCase& call, std::uint32_t device) {
  CallPlacement alone;
  alone.devices = {device};
  return estimate({call.graph, call.loads, device, call.prices}, alone);
}

CallEstimate estimate(const CallCase& call, const CallPlacement& placement) {
  // Devices that take turns rest in between.
  if (!has(placement.parallel, ParallelMode::layers) ||
      std::ranges::none_of(placement.devices,
                           [&](std::uint32_t d) { return call.prices.rates(d).rest_gain > 0; }))
    return estimate_without_rest(call, placement);
  Simulation simulation(call, placement);
  const double step_seconds = simulation.run().step_seconds;
  CallEstimate result = Simulation(call, placement, simulation.busy_shares(step_seconds)).run();
  add_needs(call, placement, result);
  return result;
}

}  // namespace heddle::engine
