#include "engine/place/unequal_layers.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/place/call_memory.h"
#include "engine/place/estimate_shared.h"
#include "engine/place/pipeline.h"
#include "engine/program/partition.h"
#include "engine/program/session_inputs.h"

namespace heddle::engine {

namespace {

constexpr int kRoomTries = 6;     // until every range finds room
constexpr int kStreamTries = 10;  // halvings of the time that copies may take
constexpr double kSpare = 0.02;   // of a device, for what estimates leave out, where there is room
constexpr double kEvenGain = 0.98;  // what is less even, or streams, has to be faster by as much
constexpr double kRingWeights = 3;  // that a staging ring holds, of the largest

std::uint64_t activation_bytes(const CallCase& call, std::uint32_t device) {
  CallPlacement alone;
  alone.devices = {device};
  const CallCase there{call.graph, call.loads, device, call.prices};
  return whole_memory(there, alone).front().need.wanted_bytes - call.load(device).weight_bytes;
}

class LayersSearch {
 public:
  LayersSearch(const CallCase& call, const std::vector<std::uint32_t>& devices)
      : call_(call),
        devices_(devices),
        load_(call.load(devices_.front())),
        groups_(load_.groups.size()) {
    for (const std::uint32_t d : devices_) {
      usable_.push_back(double(usable_bytes(call.prices.topology().devices[d])));
      activations_.push_back(double(activation_bytes(call, d)));
      if (d == call.home) case_.needed |= 1u << case_.stages.size();
      add_stage(d);
    }
    add_links();
    add_bytes();
  }

  std::vector<LayersWay> run() {
    std::vector<LayersWay> ways;
    for (std::size_t count = 2; count <= std::min(devices_.size(), groups_); ++count) {
      std::optional<CallPlacement> resident = fitting(count);
      const double seconds =
          resident ? estimate(call_, *resident).seconds : std::numeric_limits<double>::infinity();
      if (resident) ways.push_back({std::move(*resident), false});
      auto streamed = streaming(count, seconds * kEvenGain);
      if (streamed && !estimate(call_, *streamed).fits())
        ways.push_back({std::move(*streamed), true});
    }
    return ways;
  }

 private:
  // ---- what it is searched with ----

  void add_stage(std::uint32_t device) {
    PipelineCase::Stage stage;
    stage.seconds.assign(groups_ + 1, 0);
    for (const NodeIndex n : call_.graph.order)
      for (std::uint32_t set = 0; set < load_.set_count; ++set)
        stage.seconds[load_.blocks[n].group + 1] +=
            work_seconds(call_, device, call_.load(device).work(n, set)) *
            (load_.blocks[n].phase == load_.main ? load_.repeats() : 1);
    std::partial_sum(stage.seconds.begin(), stage.seconds.end(), stage.seconds.begin());
    stage.from_home = call_.prices.copy_rate(call_.home, device);
    stage.to_home = call_.prices.copy_rate(device, call_.home);
    case_.stages.push_back(std::move(stage));
  }

  void add_links() {
    for (const std::uint32_t from : devices_)
      for (const std::uint32_t to : devices_)
        case_.links.push_back(call_.prices.copy_rate(from, to));
  }

  void add_bytes() {
    weights_.assign(groups_ + 1, 0);
    in_steps_.assign(groups_ + 1, 0);
    for (const NodeIndex n : call_.graph.order) {
      const BlockLoad& block = load_.blocks[n];
      weights_[block.group + 1] += double(block.weight_bytes);
      if (block.phase == Phase::per_step) in_steps_[block.group + 1] += double(block.weight_bytes);
      for (const BlockLoad::SlotBytes& slot : block.slot_bytes)
        largest_ = std::max(largest_, double(slot.bytes));
    }
    std::partial_sum(weights_.begin(), weights_.end(), weights_.begin());
    std::partial_sum(in_steps_.begin(), in_steps_.end(), in_steps_.begin());
    case_.crossing = group_chain(call_.graph, load_).crossing;
    for (std::uint32_t set = 0; set < load_.set_count; ++set) {
      for (std::uint32_t in = 0; in < call_.graph.inputs.size(); ++in)
        if (input_phase(call_.graph.inputs[in]) == load_.main)
          case_.first_bytes += double(load_.input_bytes[set][in]);
      for (const GraphOutput& output : call_.graph.outputs)
        if (output.from.node != kGraphInputs)
          case_.last_bytes +=
              double(load_.work(output.from.node, set).output_bytes[output.from.port]);
    }
    case_.times = load_.repeats();
  }

  CallPlacement placement_of(const Pipeline& pipeline) const {
    CallPlacement placement;
    placement.parallel = ParallelMode::layers;
    std::vector<std::uint32_t> of_group(groups_, 0);
    std::uint32_t begin = 0;
    for (std::uint32_t i = 0; i < pipeline.stages.size(); ++i) {
      placement.devices.push_back(devices_[pipeline.stages[i]]);
      std::fill(of_group.begin() + begin, of_group.begin() + pipeline.ends[i], i);
      begin = pipeline.ends[i];
    }
    placement.of_block = blocks_of_groups(call_.graph, load_, of_group);
    return placement;
  }

  // ---- all weights stay ----

  std::optional<Pipeline> best_in(const std::vector<double>& room, std::size_t count) {
    for (std::size_t i = 0; i < devices_.size(); ++i) case_.stages[i].bytes = room[i];
    return fastest_pipelines(case_)[count - 1];
  }

  // Activations are at first what the whole model has, with a little to spare, then what ranges
  // turn out to have.
  std::optional<CallPlacement> fitting(std::size_t count) {
    case_.weights = weights_;
    std::vector<double> spared, all, most;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      spared.push_back(usable_[i] * (1 - kSpare) - activations_[i]);
      all.push_back(usable_[i] - activations_[i]);
      most.push_back(usable_[i]);
    }
    std::optional<CallPlacement> best;
    double seconds = std::numeric_limits<double>::infinity();
    for (const std::vector<double>& room : {spared, all, most}) fit_in(room, count, best, seconds);
    if (best) best = more_even(std::move(*best));
    return best;
  }

  // What is found there becomes `best`, where it is worth it.
  void fit_in(std::vector<double> room, std::size_t count, std::optional<CallPlacement>& best,
              double& seconds) {
    for (int i = 0; i < kRoomTries; ++i) {
      const auto found = best_in(room, count);
      if (!found || found->seconds >= seconds * kEvenGain) return;
      CallPlacement placement = placement_of(*found);
      const CallEstimate now = estimate(call_, placement);
      if (now.fits() && now.seconds < seconds * kEvenGain) {
        best = std::move(placement);
        seconds = now.seconds;
      }
      bool is_other = false;
      std::uint32_t begin = 0;
      for (std::size_t s = 0; s < found->stages.size(); ++s) {
        double& left = room[found->stages[s]];
        const double weights = weights_[found->ends[s]] - weights_[begin];
        const double next =
            double(now.needs[s].there_bytes) - (double(now.needs[s].wanted_bytes) - weights);
        is_other = is_other || next != left;
        left = next;
        begin = found->ends[s];
      }
      if (!is_other) return;
    }
  }

  // Where speeds are equal, the order and the cuts that leave every device its share of the room
  // are as good, and leave room for others on each.
  CallPlacement more_even(CallPlacement placement) const {
    CallPlacement even = placement;
    even.of_block = partition(call_.graph, load_, bytes_for_weights(call_, even.devices));
    const CallEstimate now = estimate(call_, placement), then = estimate(call_, even);
    return then.fits() && then.seconds * kEvenGain <= now.seconds ? even : placement;
  }

  // ---- weights pass ----

  // A device that works for a part of a step only has the whole step for its copies. So much of
  // what it reads in steps may pass, and the rest has to stay.
  std::vector<double> room_in(double step_seconds) const {
    std::vector<double> room;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const DeviceRates& rates = call_.prices.rates(devices_[i]);
      const CopyRate& rate =
          rates.from_pinned.is_there() && call_.prices.topology().pinned_bytes > 0
              ? rates.from_pinned
              : rates.from_host;
      const double stays = std::max(usable_[i] - activations_[i] - kRingWeights * largest_, 0.0);
      room.push_back(stays + (rate.is_free() ? 0 : rate.bytes_per_second * step_seconds));
    }
    return room;
  }

  // The step is as long as computing or as copies, whichever takes longer: more of the weights on
  // fast devices shorten the one and lengthen the other.
  std::optional<CallPlacement> streaming(std::size_t count, double faster_than) {
    for (const std::uint32_t d : devices_)
      if (!has_limit(call_.prices.topology().devices[d])) return {};
    if (in_steps_.back() <= 0) return {};  // what is read once passes on one device as well
    case_.weights = in_steps_;
    const std::vector<double> endless(devices_.size(), weights_.back() + 1);
    const auto unlimited = best_in(endless, count);
    if (!unlimited || unlimited->seconds >= faster_than) return {};
    double low = 0, high = unlimited->seconds / case_.times;
    std::optional<Pipeline> best;
    for (int i = 0; i < kStreamTries; ++i) {
      // Doubled until there is room, halved from then on.
      const double middle = best ? (low + high) / 2 : high;
      const auto found = best_in(room_in(middle), count);
      if (found && found->seconds <= middle * case_.times * (1 + 1e-9)) {
        best = found;
        high = middle;
      } else if (best) {
        low = middle;
      } else {
        low = high;
        high *= 2;
      }
    }
    if (!best || high * case_.times >= faster_than) return {};
    return better_streamed(placement_of(*best));
  }

  // The same devices with equal shares of their room, where that turns out to be better.
  CallPlacement better_streamed(CallPlacement placement) const {
    CallPlacement even = placement;
    even.of_block = partition(call_.graph, load_, bytes_for_weights(call_, even.devices));
    const CallEstimate now = estimate_streamed(call_, placement),
                       then = estimate_streamed(call_, even);
    if (!then.fits()) return placement;
    return !now.fits() || then.seconds * kEvenGain <= now.seconds ? even : placement;
  }

  const CallCase& call_;
  const std::vector<std::uint32_t>& devices_;
  const CallLoad& load_;  // the same on every device
  const std::size_t groups_;
  std::vector<double> usable_, activations_;  // bytes, by device
  std::vector<double> weights_, in_steps_;    // by cut: bytes before it
  double largest_ = 0;                        // bytes of a weight
  PipelineCase case_;
};

}  // namespace

std::vector<double> bytes_for_weights(const CallCase& call,
                                      const std::vector<std::uint32_t>& devices) {
  std::vector<double> bytes;
  for (const std::uint32_t d : devices)
    bytes.push_back(std::max(
        double(usable_bytes(call.prices.topology().devices[d])) - double(activation_bytes(call, d)),
        1.0));
  return bytes;
}

std::vector<LayersWay> unequal_layers(const CallCase& call,
                                      const std::vector<std::uint32_t>& devices) {
  return LayersSearch(call, devices).run();
}

}  // namespace heddle::engine
