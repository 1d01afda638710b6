#include "engine/place/staged_calls.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/graph/model.h"
#include "engine/place/call_ways.h"
#include "engine/place/device_choice.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/stages.h"

namespace heddle::engine {

namespace {

// Of the model's outputs, as far as blocks make them.
std::uint64_t made_by(const Model& model, const CallLoad& load) {
  std::uint64_t bytes = 0;
  for (const GraphOutput& output : model.graph->outputs) {
    if (output.from.node >= load.blocks.size()) continue;
    const std::vector<std::uint64_t>& ports = load.work(output.from.node, 0).output_bytes;
    if (output.from.port < ports.size()) bytes += ports[output.from.port];
  }
  return bytes;
}

std::uint32_t stage_count(std::span<const StagedCall> calls) {
  std::uint32_t last = 0;
  for (const StagedCall& call : calls) last = std::max(last, call.stage);
  return last + 1;
}

std::uint32_t rounds_of(std::span<const StagedCall> calls) {
  const std::uint32_t last = stage_count(calls) - 1;
  return std::uint32_t(std::ranges::count(calls, last, &StagedCall::stage));
}

// The most of all rounds, by stage.
std::vector<std::uint64_t> most(std::span<const StagedCall> calls,
                                std::uint64_t StagedCall::*bytes) {
  std::vector<std::uint64_t> all(stage_count(calls));
  for (const StagedCall& call : calls) all[call.stage] = std::max(all[call.stage], call.*bytes);
  return all;
}

// The most that calls of a stage take of what one call of the stage before has made, by stage.
std::vector<std::uint64_t> most_given(std::span<const StagedCall> calls) {
  std::vector<std::uint64_t> given(stage_count(calls)), taken(given.size());
  for (const StagedCall& call : calls) {
    taken[call.stage] += call.handed_bytes;
    given[call.stage] = std::max(given[call.stage], taken[call.stage]);
    if (call.stage + 1 < taken.size()) taken[call.stage + 1] = 0;
    if (call.stage == 0) taken[0] = 0;  // the node gives each by itself
  }
  return given;
}

// What crosses lies on both sides, once for each round that is open, and where it is made once
// more: the next one is begun before the copy of the last one has ended. What several calls take
// lies there until the last of them.
std::vector<std::uint64_t> under_way(std::span<const StagedCall> calls,
                                     const PlacedStages& placed) {
  const std::vector<std::uint64_t> handed = most(calls, &StagedCall::handed_bytes),
                                   kept = most(calls, &StagedCall::kept_bytes),
                                   made = most(calls, &StagedCall::made_bytes),
                                   given = most_given(calls);
  const std::uint64_t open = placed.ahead() + 1;
  const auto device_of = [&](std::size_t stage) { return placed.devices[placed.of_stage[stage]]; };
  std::uint32_t last_device = 0;
  for (const std::uint32_t d : placed.devices) last_device = std::max(last_device, d);
  std::vector<std::uint64_t> bytes(last_device + 1);
  std::uint32_t before = placed.devices.back();  // home hands out what the first stage reads
  if (placed.deals_rounds()) {
    // A device has two of the open rounds. Home has given as many more that have not begun.
    const std::uint64_t each = 2, given_out = 2 * open * handed.front(),
                        there = std::accumulate(kept.begin(), kept.end(), std::uint64_t{0});
    for (const std::uint32_t d : placed.devices)
      bytes[d] = 2 * each * made.back() + (d == before ? given_out : each * handed.front() + there);
    return bytes;
  }
  for (std::size_t s = 0; s < handed.size(); ++s) {
    // What is kept the node has told as its own, on home.
    if (device_of(s) != placed.devices.back()) bytes[device_of(s)] += kept[s];
    if (device_of(s) != before) {
      bytes[before] += open * handed[s] + given[s];
      bytes[device_of(s)] += open * handed[s];
    } else if (before != placed.devices.back()) {
      bytes[before] += given[s] - handed[s];
    }
    before = device_of(s);
  }
  // Results wait there to be read: as they are made, and as the node reads them.
  bytes[before] += 2 * open * (made.back() - std::min(made.back(), kept.back()));
  return bytes;
}

struct Cut {
  double slowest = std::numeric_limits<double>::infinity();
  std::uint64_t handed = 0;
  std::uint32_t begin = 0;                   // of the last range
  std::vector<std::uint32_t> of_stage = {};  // of the whole cut
};

// until: seconds of the first s stages. The cut whose slowest range is fastest, or, with a limit
// for that, the one that hands on least within it; ties go to what the other one goes by.
Cut least_cut(const std::vector<double>& until, std::uint32_t devices,
              const std::vector<std::uint64_t>& handed, std::optional<double> limit) {
  const std::uint32_t stages = std::uint32_t(until.size()) - 1;
  const auto is_better = [&](const Cut& a, const Cut& b) {
    if (a.slowest > limit.value_or(a.slowest)) return false;
    if (limit && b.slowest <= *limit)
      return std::pair(a.handed, a.slowest) < std::pair(b.handed, b.slowest);
    return std::pair(a.slowest, a.handed) < std::pair(b.slowest, b.handed);
  };
  // best[k][s]: of the first s stages over k + 1 devices.
  std::vector<std::vector<Cut>> best(devices, std::vector<Cut>(stages + 1));
  for (std::uint32_t s = 1; s <= stages; ++s) best[0][s] = {until[s], 0, 0};
  for (std::uint32_t k = 1; k < devices; ++k)
    for (std::uint32_t s = k + 1; s <= stages; ++s)
      for (std::uint32_t begin = k; begin < s; ++begin) {
        const Cut& before = best[k - 1][begin];
        const Cut one{std::max(before.slowest, until[s] - until[begin]),
                      before.handed + handed[begin], begin};
        if (is_better(one, best[k][s])) best[k][s] = one;
      }
  Cut all = best[devices - 1][stages];
  all.of_stage.resize(stages);
  std::uint32_t end = stages;
  for (std::uint32_t k = devices; k-- > 0; end = best[k][end].begin)
    std::fill(all.of_stage.begin() + best[k][end].begin, all.of_stage.begin() + end, k);
  return all;
}

}  // namespace

std::optional<RoundStage> round_stage(const Model& model) {
  const auto* settings = model.settings ? std::get_if<Record>(&model.settings->content) : nullptr;
  if (settings == nullptr) return {};
  const Value* const number = settings->find(HEDDLE_ROUND_STAGE);
  const Value* const handed = settings->find(HEDDLE_ROUND_INPUT);
  if (number == nullptr || handed == nullptr) return {};
  const auto* stage = std::get_if<std::int64_t>(&(*number)->content);
  const auto* input = std::get_if<std::string>(&(*handed)->content);
  constexpr std::int64_t kMostStages = 1 << 16;
  if (stage == nullptr || input == nullptr || *stage < 0 || *stage > kMostStages) return {};
  const Value* const told = settings->find(HEDDLE_ROUND_INDEPENDENT);
  const bool* const alone = told == nullptr ? nullptr : std::get_if<bool>(&(*told)->content);
  return RoundStage{std::uint32_t(*stage), *input, alone != nullptr && *alone};
}

std::vector<StagedCall> staged_calls(const std::vector<CallSpec>& calls,
                                     const std::vector<PlacedCall>& alone,
                                     std::span<const std::shared_ptr<const CallLoad>> loads) {
  std::vector<StagedCall> staged;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const CallSpec& call = calls[c];
    const Model& model = *get_model(*call.model);
    const std::optional<RoundStage> stage = round_stage(model);
    if (!stage || (staged.empty() && stage->number != 0) || alone[c].streamed || !alone[c].fits ||
        loads[c] == nullptr || call.sets.size() != 1)
      return {};
    StagedCall one{stage->number, alone[c].seconds, 0, 0, 0};
    for (const auto& [name, info] : call.sets.front().constants)
      (name == stage->handed ? one.handed_bytes : one.kept_bytes) += dense_bytes(info);
    one.made_bytes = made_by(model, *loads[c]);
    one.is_independent = stage->is_independent;
    staged.push_back(one);
  }
  // The first round has all stages, and each goes on to the last one.
  const std::uint32_t last = stage_count(staged) - 1;
  bool are_independent = true;
  for (std::size_t c = 0; c < staged.size(); ++c) {
    const std::uint32_t stage = staged[c].stage;
    const bool ends = c + 1 == staged.size(), goes_on = !ends && staged[c + 1].stage == stage + 1;
    if (stage == last ? goes_on : !goes_on) return {};
    if (!ends) staged[c + 1].round = staged[c].round + (goes_on ? 0 : 1);
    if (!ends && !goes_on) are_independent = are_independent && staged[c + 1].stage == 0;
  }
  for (StagedCall& one : staged) one.is_independent = one.is_independent && are_independent;
  return staged;
}

std::vector<std::uint32_t> cut_stages(std::span<const StagedCall> calls, std::uint32_t devices) {
  constexpr double kAsSlow = 1.02;  // times are estimates: what is this near is as good
  const std::uint32_t stages = stage_count(calls);
  const std::vector<std::uint64_t> handed = most(calls, &StagedCall::handed_bytes);
  std::vector<double> until(stages + 1);
  for (const StagedCall& call : calls) until[call.stage + 1] += call.seconds;
  std::partial_sum(until.begin(), until.end(), until.begin());
  const double slowest = least_cut(until, devices, handed, {}).slowest;
  return least_cut(until, devices, handed, kAsSlow * slowest).of_stage;
}

double staged_seconds(std::span<const StagedCall> calls, const std::vector<std::uint32_t>& of_stage,
                      const std::vector<std::uint32_t>& devices, const Prices& prices) {
  const std::uint32_t home = std::uint32_t(devices.size()) - 1, last = stage_count(calls) - 1;
  std::vector<double> free(devices.size());
  std::vector<double> made(last + 1);  // by stage: when its latest result is there
  std::vector<double> read;            // by round: when its result is there
  bool begins = true;                  // a round
  const std::size_t ahead = of_stage.empty() ? 2 * devices.size() - 1 : devices.size();
  for (const StagedCall& call : calls) {
    const auto device_of = [&](std::uint32_t stage) {
      return of_stage.empty() ? std::uint32_t(read.size() % devices.size()) : of_stage[stage];
    };
    const std::uint32_t from = call.stage == 0 ? home : device_of(call.stage - 1),
                        at = device_of(call.stage);
    double ready = call.stage == 0 ? 0 : made[call.stage - 1];
    // The node does not go on before the result of a round is read that lies so far behind.
    if (begins && read.size() > ahead) ready = std::max(ready, read[read.size() - ahead - 1]);
    if (at != from) ready += prices.transfer_seconds(devices[from], devices[at], call.handed_bytes);
    made[call.stage] = free[at] = std::max(ready, free[at]) + call.seconds;
    begins = call.stage == last;
    if (begins) read.push_back(std::max(made[last], read.empty() ? 0.0 : read.back()));
  }
  return *std::ranges::max_element(free);
}

std::optional<PlacedStages> place_stages(std::span<const StagedCall> calls, std::uint32_t home,
                                         const std::vector<std::uint32_t>& devices,
                                         const Prices& prices) {
  if (calls.empty()) return {};
  std::vector<std::uint32_t> others;
  for (const std::uint32_t d : devices)
    if (d != home) others.push_back(d);
  PlacedStages best;
  for (const StagedCall& call : calls) best.alone_seconds += call.seconds;
  best.seconds = best.alone_seconds;
  const std::uint32_t stages = stage_count(calls);
  const std::uint32_t rounds = rounds_of(calls);
  const bool are_independent = std::ranges::all_of(calls, &StagedCall::is_independent);
  const auto consider = [&](std::size_t count, std::vector<std::uint32_t> of_stage) {
    PlacedStages one{{others.begin(), others.begin() + std::ptrdiff_t(count - 1)},
                     std::move(of_stage),
                     rounds,
                     0,
                     best.alone_seconds,
                     {}};
    one.devices.push_back(home);
    one.seconds = staged_seconds(calls, one.of_stage, one.devices, prices);
    if (one.seconds < kWorthIt * best.seconds) best = std::move(one);
  };
  for (const std::size_t count : counts_of_devices(others.size() + 1)) {
    if (are_independent && count <= rounds) consider(count, {});
    if (count <= stages) consider(count, cut_stages(calls, std::uint32_t(count)));
  }
  if (best.devices.empty()) return {};
  best.under_way_bytes = under_way(calls, best);
  return best;
}

}  // namespace heddle::engine
