#include "engine/place/estimate.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "engine/place/estimate_shared.h"
#include "engine/place/link_clock.h"
#include "engine/program/session_inputs.h"

namespace heddle::engine {

namespace {

// By device of the topology: the share of a step's time in which it computes. What runs once before
// the steps, and is little, is priced by it too.
using BusyShares = std::map<std::uint32_t, double>;

// Blocks whole: on one device or in layers, for branches that may be side by side.
class Simulation {
 public:
  // Where no share is given, devices compute all the time.
  Simulation(const CallCase& call, const CallPlacement& placement, BusyShares busy = {})
      : call_(call),
        placement_(placement),
        load_(call.load(placement.devices.front())),
        branches_(call_branches(load_, placement)),
        busy_(std::move(busy)),
        finished_(branches_.size(), std::vector<double>(call.graph.nodes.size(), 0)),
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
    result.needs = needs();
    for (const DeviceNeed& need : result.needs)
      result.load_seconds = std::max(
          result.load_seconds,
          call_.prices.transfer_seconds(kHostSide, need.device, weight_bytes(need.device)));
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
  std::uint32_t device_of(NodeIndex n, std::uint32_t branch) const {
    const std::uint32_t rank =
        has(placement_.parallel, ParallelMode::layers) ? placement_.of_block[n] : 0;
    return placement_.devices[branches_[branch].first + rank];
  }
  Phase phase_of(const Source& s) const {
    return s.node == kGraphInputs ? input_phase(call_.graph.inputs[s.port])
                                  : load_.blocks[s.node].phase;
  }
  std::uint32_t place_of(const Source& s, std::uint32_t branch) const {
    return s.node == kGraphInputs ? call_.home : device_of(s.node, branch);
  }
  const BlockWork& work_of(NodeIndex n, std::uint32_t branch) const {
    return call_.load(device_of(n, branch)).work(n, branches_[branch].set);
  }
  // What is made for all steps at once has no items.
  double fraction_of(Phase phase, std::uint32_t branch) const {
    return phase == Phase::precomputed ? 1 : branches_[branch].fraction;
  }
  std::uint64_t part_of(std::uint64_t bytes, Phase phase, std::uint32_t branch) const {
    return std::uint64_t(double(bytes) * fraction_of(phase, branch));
  }
  std::uint64_t bytes_of(const Source& s, std::uint32_t branch) const {
    const std::uint64_t all = s.node == kGraphInputs
                                  ? load_.input_bytes[branches_[branch].set][s.port]
                                  : work_of(s.node, branch).output_bytes[s.port];
    return part_of(all, phase_of(s), branch);
  }

  // When a value is on a device; one copy serves all readers there.
  double arrival(const Source& source, std::uint32_t branch, std::uint32_t to, Phase reader) {
    const std::uint32_t from = place_of(source, branch);
    const bool earlier =
        phase_of(source) !=
        reader;  // made in an earlier phase: brought once, and there from the beginning
    const double made = source.node == kGraphInputs || earlier ? 0 : finished_[branch][source.node];
    if (from == to) return made;
    const auto [at, is_new] = arrived_.try_emplace({source, branch, to}, 0);
    if (!is_new) return at->second;
    const std::uint64_t bytes = bytes_of(source, branch);
    if (bytes == 0) return at->second = made;  // as an optional input that is not given
    if (earlier) {
      once_seconds_ += call_.prices.transfer_seconds(from, to, bytes);
      return 0;
    }
    if (!links_.is_shared(from, to)) transfer_bytes_ += bytes;
    return at->second = links_.send(from, to, made, bytes);
  }

  double phase_seconds(Phase phase) {
    std::map<std::uint32_t, double> free_at;
    links_.reset();
    computing_.clear();
    double end = 0;
    for (const NodeIndex n : call_.graph.order) {
      if (load_.blocks[n].phase != phase) continue;
      for (std::uint32_t branch = 0; branch < branches_.size(); ++branch) {
        const std::uint32_t here = device_of(n, branch);
        double& free = free_at[here];
        double begin = free;
        const Node& node = call_.graph.nodes[n];
        for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
          if (const auto* link = std::get_if<Source>(&node.inputs[i]);
              link != nullptr && (node.type->input(i).flags & HEDDLE_PORT_SHAPE) == 0)
            begin = std::max(begin, arrival(*link, branch, here, phase));
        const double seconds = work_seconds(call_, here, work_of(n, branch), ParallelMode::none,
                                            fraction_of(phase, branch), busy(here));
        computing_[here] += seconds;
        free = begin + seconds;
        finished_[branch][n] = free;
        end = std::max(end, free);
      }
    }
    if (phase == load_.main)
      for (const GraphOutput& output : call_.graph.outputs)
        for (std::uint32_t branch = 0; branch < branches_.size(); ++branch)
          end = std::max(end, arrival(output.from, branch, call_.home, phase));
    return end;
  }

  std::uint64_t weight_bytes(std::uint32_t device) const {
    std::uint64_t bytes = 0;
    for (const NodeIndex n : call_.graph.order) {
      bool here = false;
      for (std::uint32_t branch = 0; branch < branches_.size(); ++branch)
        here = here || device_of(n, branch) == device;
      if (here) bytes += call_.load(device).blocks[n].weight_bytes;
    }
    return bytes;
  }

  // Values live from the block that makes them, or the first that reads them on another device, to
  // the last that reads them there; what was made before the steps lives throughout.
  std::vector<DeviceNeed> needs() const {
    const std::size_t positions = call_.graph.order.size();
    std::vector<std::uint32_t> position(call_.graph.nodes.size(), 0);
    for (std::uint32_t p = 0; p < positions; ++p) position[call_.graph.order[p]] = p;
    struct Life {
      std::uint32_t first = 0, last = 0;
      std::uint64_t bytes = 0;
    };
    std::map<std::tuple<Source, std::uint32_t, std::uint32_t>, Life> lives;
    const auto touch = [&](const Source& s, std::uint32_t branch, std::uint32_t device,
                           std::uint32_t first, std::uint32_t last) {
      const bool lasting = phase_of(s) != load_.main;
      const auto [at, is_new] = lives.try_emplace(
          {s, branch, device},
          Life{lasting ? 0 : first, lasting ? std::uint32_t(positions) : last, 0});
      if (is_new)
        at->second.bytes = bytes_of(s, branch);
      else if (!lasting)
        at->second.last = std::max(at->second.last, last);
    };
    for (std::uint32_t p = 0; p < positions; ++p) {
      const NodeIndex n = call_.graph.order[p];
      const Node& node = call_.graph.nodes[n];
      for (std::uint32_t branch = 0; branch < branches_.size(); ++branch) {
        const std::uint32_t here = device_of(n, branch);
        for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
          const auto* link = std::get_if<Source>(&node.inputs[i]);
          if (link == nullptr || (node.type->input(i).flags & HEDDLE_PORT_SHAPE) != 0) continue;
          if (phase_of(*link) != load_.main && load_.blocks[n].phase != load_.main)
            continue;  // gone before the steps begin
          const std::uint32_t from = place_of(*link, branch);
          const std::uint32_t made = link->node == kGraphInputs ? 0 : position[link->node];
          touch(*link, branch, from, made, p);
          if (from != here) touch(*link, branch, here, made, p);
        }
      }
    }
    for (const GraphOutput& output : call_.graph.outputs)
      for (std::uint32_t branch = 0; branch < branches_.size(); ++branch) {
        const std::uint32_t from = place_of(output.from, branch),
                            made =
                                output.from.node == kGraphInputs ? 0 : position[output.from.node];
        touch(output.from, branch, from, made, std::uint32_t(positions));
      }
    std::map<std::uint32_t, std::vector<std::int64_t>> changes;
    for (const std::uint32_t d : placement_.devices) changes[d].assign(positions + 2, 0);
    for (const auto& [key, life] : lives) {
      const auto change = changes.find(std::get<2>(key));
      if (change == changes.end()) continue;  // at home, where none of the blocks run
      change->second[life.first] += std::int64_t(life.bytes);
      change->second[life.last + 1] -= std::int64_t(life.bytes);
    }
    std::vector<DeviceNeed> needs;
    for (const std::uint32_t d : placement_.devices) {
      std::int64_t live = 0, peak = 0;
      for (std::uint32_t p = 0; p <= positions; ++p) {
        live += changes[d][p];
        std::uint64_t inside = 0;
        for (std::uint32_t branch = 0; p < positions && branch < branches_.size(); ++branch) {
          const NodeIndex n = call_.graph.order[p];
          if (device_of(n, branch) != d) continue;
          const BlockWork& work = work_of(n, branch);
          std::uint64_t outputs = 0;
          for (const std::uint64_t bytes : work.output_bytes) outputs += bytes;
          inside = std::max(inside, part_of(work.peak_bytes - std::min(work.peak_bytes, outputs),
                                            load_.blocks[n].phase, branch));
        }
        peak = std::max(peak, live + std::int64_t(inside));
      }
      needs.push_back({d, weight_bytes(d) + std::uint64_t(peak),
                       usable_bytes(call_.prices.topology().devices[d])});
    }
    return needs;
  }

  const CallCase& call_;
  const CallPlacement& placement_;
  const CallLoad&
      load_;  // of the first device: rates and counts are the same in every compute type
  const std::vector<CallBranch> branches_;
  const BusyShares busy_;
  std::map<std::uint32_t, double> computing_;  // seconds of the last phase, by device
  std::vector<std::vector<double>> finished_;  // by branch and node
  std::map<std::tuple<Source, std::uint32_t, std::uint32_t>, double> arrived_;
  LinkClock links_;
  double once_seconds_ = 0;
  std::uint64_t transfer_bytes_ = 0;
};

}  // namespace

bool CallEstimate::fits() const {
  return std::ranges::all_of(
      needs, [](const DeviceNeed& need) { return need.wanted_bytes <= need.there_bytes; });
}

CallEstimate estimate_whole(const CallCase& call, const CallPlacement& placement) {
  return Simulation(call, placement).run();
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
  return Simulation(call, placement, simulation.busy_shares(step_seconds)).run();
}

}  // namespace heddle::engine
