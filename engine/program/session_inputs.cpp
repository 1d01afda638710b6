#include "engine/program/session_inputs.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"

namespace heddle::engine {

std::vector<SessionBranch> session_branches(const CallPlacement& placement, std::uint32_t sets,
                                            std::int64_t items) {
  std::vector<SessionBranch> branches;
  const bool cut = has(placement.parallel, ParallelMode::data);
  const std::vector<std::int64_t> shares =
      cut ? shard_sizes(items, placement.item_fractions) : std::vector<std::int64_t>{0};
  for (std::uint32_t set = 0; set < sets; ++set) {
    std::int64_t begin = 0;
    for (std::uint32_t share = 0; share < shares.size(); ++share) {
      if (cut && shares[share] == 0) continue;
      branches.push_back({set, begin, shares[share], placement.first_device_of(set, share)});
      begin += shares[share];
    }
  }
  return branches;
}

SessionInputs::SessionInputs(const Graph& graph, const SessionSpec& spec)
    : graph_(graph), spec_(spec) {
  check();
  for (const GraphInput& input : graph.inputs) {
    if ((input.flags & HEDDLE_INPUT_BATCH) == 0 || input_phase(input) == Phase::precomputed)
      continue;
    const auto& given = infos(input_phase(input), 0);
    if (const auto found = given.find(input.name); found != given.end() && found->second.rank > 0)
      items_ = std::max(items_, found->second.shape[0]);
  }
  if (has(spec.placement.parallel, ParallelMode::data) && items_ == 0)
    throw Error(Code::invalid_argument,
                "the batch cannot be split: no input of this model has one");
  branches_ = session_branches(spec.placement, std::uint32_t(spec.sets.size()), items_);
}

const SessionSpec::Infos& SessionInputs::infos(Phase phase, std::uint32_t set) const {
  return phase == Phase::loop_invariant ? spec_.sets[set].constants
         : phase == Phase::precomputed  ? spec_.schedule
                                        : spec_.sets[set].steps;
}

bool SessionInputs::is_cut(const GraphInput& input, std::uint32_t branch) const {
  if (branches_[branch].count == 0 || (input.flags & HEDDLE_INPUT_BATCH) == 0) return false;
  const auto& given = infos(input_phase(input), branches_[branch].set);
  const auto found = given.find(input.name);
  return found != given.end() && found->second.rank > 0 && found->second.shape[0] == items_;
}

std::optional<heddle_tensor_info> SessionInputs::info(const GraphInput& input,
                                                      std::uint32_t branch) const {
  const auto& given = infos(input_phase(input), branches_[branch].set);
  const auto found = given.find(input.name);
  if (found == given.end()) return {};
  heddle_tensor_info info = found->second;
  if (is_cut(input, branch)) info.shape[0] = branches_[branch].count;
  return info;
}

std::uint32_t SessionInputs::first_equal(const GraphInput& input, std::uint32_t branch) const {
  if (input_phase(input) == Phase::precomputed) return 0;
  if (is_cut(input, branch)) return branch;
  for (std::uint32_t other = 0; other < branch; ++other)
    if (branches_[other].set == branches_[branch].set) return other;
  return branch;
}

void SessionInputs::check() const {
  for (std::uint32_t set = 0; set < spec_.sets.size(); ++set) {
    for (const GraphInput& input : graph_.inputs) {
      const auto& given = infos(input_phase(input), set);
      const auto found = given.find(input.name);
      if (found == given.end() && (input.flags & HEDDLE_INPUT_OPTIONAL) == 0)
        throw Error(Code::invalid_argument,
                    cat("the model's input ", quote(input.name), " is missing"));
      if (found != given.end() && input_phase(input) == Phase::precomputed &&
          (found->second.rank == 0 || found->second.shape[0] != std::int64_t(spec_.step_count)))
        throw Error(Code::invalid_argument,
                    cat("the model's precomputed input ", quote(input.name), " is ",
                        describe(found->second), ": its first axis has to be the ",
                        spec_.step_count, " steps"));
    }
    for (const Phase phase : {Phase::loop_invariant, Phase::precomputed, Phase::per_step})
      for (const auto& [name, info] : infos(phase, set)) {
        const auto known =
            std::ranges::find_if(graph_.inputs, [&, &name = name](const GraphInput& i) {
              return i.name == name && input_phase(i) == phase;
            });
        if (known != graph_.inputs.end()) continue;
        std::vector<std::string_view> names;
        for (const GraphInput& i : graph_.inputs) names.push_back(i.name);
        throw Error(Code::invalid_argument, cat("the model has no ",
                                                phase == Phase::loop_invariant ? "loop-invariant"
                                                : phase == Phase::precomputed  ? "precomputed"
                                                                               : "per-step",
                                                " input ", quote(name), "; it has ",
                                                join(names, ", "), ".", did_you_mean(name, names)));
      }
  }
}

}  // namespace heddle::engine
