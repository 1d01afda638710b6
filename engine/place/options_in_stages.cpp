// Calls that are made in rounds of stages, of a node's options: over several devices, or why not.
#include <algorithm>
#include <map>

#include "engine/base/text.h"
#include "engine/place/call_hints.h"
#include "engine/place/call_ways.h"
#include "engine/place/device_choice.h"
#include "engine/place/node_values.h"
#include "engine/place/parallel_options.h"
#include "engine/place/place_call.h"

namespace heddle::engine {

namespace {

// Whether hints say how a call is placed; a list of devices that may be used does not.
bool is_told_where(const Model& model, const Hints& caller, std::uint32_t home,
                   const Topology& topology) {
  const CallWish wish = read_call_hints(model, caller, home, topology);
  return wish.parallel || wish.all_devices || !wish.of_block.empty() || !model.hints.device.empty();
}

// Of the devices those that take as long as home, and make the same bytes.
std::vector<std::uint32_t> equally_fast(std::vector<std::uint32_t> devices, std::uint32_t home,
                                        const Topology& topology) {
  const DeviceFacts& at = topology.devices[home];
  std::erase_if(devices, [&](std::uint32_t d) {
    const DeviceFacts& other = topology.devices[d];
    return other.kind != at.kind || other.model != at.model || other.compute != at.compute;
  });
  return devices;
}

// Whether weights of all stages of a device stay beside what is under way, the largest call, and on
// home the node's values.
bool have_room(const std::vector<PlacedCall>& calls, const std::vector<StagedCall>& staged,
               const std::vector<std::shared_ptr<const CallLoad>>& loads,
               const PlacedStages& stages, std::uint64_t values, const Topology& topology) {
  for (const std::uint32_t d : stages.devices) {
    if (!has_limit(topology.devices[d])) continue;
    std::map<std::uint32_t, std::uint64_t> weights;  // by stage: all rounds share them
    std::uint64_t most = 0;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      if (calls[c].placement.devices.front() != d) continue;
      if (!calls[c].fits || calls[c].streamed) return false;
      std::uint64_t& of_stage = weights[staged[c].stage];
      of_stage = std::max(of_stage, loads[c]->weight_bytes);
      for (const Alternative& way : calls[c].report.alternatives)
        if (way.chosen && !way.needs.empty())
          most =
              std::max(most, way.needs.front().wanted_bytes -
                                 std::min(way.needs.front().wanted_bytes, loads[c]->weight_bytes));
    }
    std::uint64_t all = most + stages.under_way_bytes[d];
    if (d == stages.devices.back()) all += values;
    for (const auto& [stage, bytes] : weights) all += bytes;
    if (all > usable_bytes(topology.devices[d])) return false;
  }
  return true;
}

std::string why_undivided(const std::vector<StagedCall>& staged) {
  if (staged.empty()) return "one device has no room for all weights of a stage, or stages differ";
  const auto most = std::ranges::max(staged, {}, &StagedCall::stage);
  if (most.stage == 0 && !most.is_independent) return "there is one stage";
  if (std::ranges::count(staged, most.stage, &StagedCall::stage) == 1) return "there is one chunk";
  return "several devices would not be 2 % faster";
}

}  // namespace

void Options::place_in_stages(NodeIndex n, std::uint32_t home,
                              const std::vector<std::uint32_t>& candidates,
                              Assignment& assignment) {
  const std::vector<CallSpec>& calls = request_.inferred.nodes[n].calls;
  if (candidates.size() < 2 || calls.empty() ||
      !std::ranges::all_of(calls, [](const CallSpec& call) {
        return round_stage(*get_model(*call.model)).has_value();
      }))
    return;
  std::string& why = assignment.undivided;
  if (!request_.may_stage) {
    why = "budgets have room for one device at a time";
    return;
  }
  const std::vector<std::uint32_t> alike = equally_fast(candidates, home, request_.topology);
  if (alike.size() < 2) {
    why = "no other device that it may use is of the same model";
    return;
  }
  std::vector<PlacedCall> alone;
  std::vector<std::shared_ptr<const CallLoad>> loads;
  double seconds = 0;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    if (is_told_where(*get_model(*calls[c].model), request_.graph.nodes[n].hints, home,
                      request_.topology)) {
      why = "a hint says where it runs";
      return;
    }
    const auto of_call = loads_of(n, c);
    if (of_call.empty()) return;
    loads.push_back(of_call[home]);
    alone.push_back(placed_alone(n, c, home));
    seconds += assignment.calls[c].seconds;
  }
  const std::vector<StagedCall> staged = staged_calls(calls, alone, loads);
  std::optional<PlacedStages> stages = place_stages(staged, home, alike, prices_);
  if (!stages || stages->seconds >= kWorthIt * seconds) {
    why = why_undivided(staged);
    return;
  }
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const std::uint32_t stage = staged[c].stage, round = staged[c].round;
    const std::uint32_t device = stages->devices[stages->device_of(round, stage)];
    if (device != home) alone[c] = placed_alone(n, c, device);
    alone[c].is_stage = true;
    alone[c].report.reason = stages->deals_rounds()
                                 ? cat("chunk ", round + 1, " of ", stages->rounds)
                                 : cat("stage ", stage + 1, " of ", stages->of_stage.size());
  }
  const std::uint64_t values =
      values_of(request_.graph.nodes[n], request_.inferred.nodes[n], request_.inferred.nodes);
  if (!have_room(alone, staged, loads, *stages, values, request_.topology)) {
    why = "there is no room for what several devices have under way beside the weights";
    return;
  }
  assignment.calls = std::move(alone);
  assignment.stages = std::move(stages);
}

}  // namespace heddle::engine
