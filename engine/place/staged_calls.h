// Calls that a node makes in rounds of the same stages (heddle_stages_service), cut by time into
// ranges of stages, a device for each: while one is at the last stages of a round, another one is
// at the first stages of the next. Rounds that read nothing of each other are dealt out as a whole,
// too. Each stage of each round computes what it does on one device, so the bytes are the same.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/place/alternatives.h"
#include "engine/place/costs.h"
#include "engine/program/infer.h"
#include "engine/program/workload.h"

namespace heddle::engine {

struct PlacedStages {
  std::vector<std::uint32_t> devices;   // of the topology, in the order of their ranges; home last
  std::vector<std::uint32_t> of_stage;  // by stage: an index into devices; empty: each device in
                                        // turn is given a whole round
  std::uint32_t rounds = 0;
  double seconds = 0;        // of all rounds, from the first call's beginning to the last one's end
  double alone_seconds = 0;  // on one device
  // By device: what stages there keep between their calls, but on home, whose scratch the node has
  // told with all of that; and what is handed on, of all rounds under way.
  std::vector<std::uint64_t> under_way_bytes;

  bool deals_rounds() const { return of_stage.empty(); }
  // Rounds that are opened beyond the one whose result is read: each device has one to do when it
  // has done one, of whole rounds also while the node is at the results of another device.
  std::uint32_t ahead() const {
    const auto count = std::uint32_t(devices.size());
    return deals_rounds() ? 2 * count - 1 : count;
  }
  // Of that index into devices, where whole rounds are dealt out.
  std::uint32_t rounds_of(std::uint32_t index) const {
    const auto count = std::uint32_t(devices.size());
    return (rounds + count - 1 - index) / count;
  }
  // An index into devices.
  std::uint32_t device_of(std::uint32_t round, std::uint32_t stage) const {
    return deals_rounds() ? round % std::uint32_t(devices.size()) : of_stage[stage];
  }
};

// What a model says of its place in a round, by its settings (heddle/abi/stages.h).
struct RoundStage {
  std::uint32_t number = 0;
  std::string handed;           // the input that the stage before has made
  bool is_independent = false;  // its rounds read nothing of each other
};
std::optional<RoundStage> round_stage(const Model& model);

// One call as a stage.
struct StagedCall {
  std::uint32_t stage = 0;
  double seconds = 0;
  std::uint64_t handed_bytes = 0, kept_bytes = 0, made_bytes = 0;  // kept: between its calls
  std::uint32_t round = 0;
  bool is_independent = false;  // of its round, all of which it is
};

// The calls as stages; empty where they are none, or not all of them are. `loads`: by call, on
// home.
std::vector<StagedCall> staged_calls(const std::vector<CallSpec>& calls,
                                     const std::vector<PlacedCall>& alone,
                                     std::span<const std::shared_ptr<const CallLoad>> loads);

// Where to cut so that the device with the most to do has the least, for each count of devices:
// by stage, which of them. Of cuts within 2 % of that the one that hands on least is taken.
std::vector<std::uint32_t> cut_stages(std::span<const StagedCall> calls, std::uint32_t devices);

// What all rounds take when each call waits for its device, for what it is handed, and, `ahead`
// rounds behind, for the result to be read. of_stage: as in PlacedStages; devices: of the topology.
double staged_seconds(std::span<const StagedCall> calls, const std::vector<std::uint32_t>& of_stage,
                      const std::vector<std::uint32_t>& devices, const Prices& prices);

// The fastest way over some of `devices`, which are alike, home among them; nothing where none is
// faster than one device by kWorthIt. Memory is for the caller to hold it to.
std::optional<PlacedStages> place_stages(std::span<const StagedCall> calls, std::uint32_t home,
                                         const std::vector<std::uint32_t>& devices,
                                         const Prices& prices);

}  // namespace heddle::engine
