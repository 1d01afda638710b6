#include "engine/program/session_inputs.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"

namespace heddle::core {

std::vector<SessionLane> session_lanes(const CallPlacement& placement, std::uint32_t sets, std::int64_t items) {
  std::vector<SessionLane> lanes;
  const bool cut = placement.parallel == ParallelMode::data;
  const std::vector<std::int64_t> parts = cut ? divide(items, placement.shares) : std::vector<std::int64_t>{0};
  for (std::uint32_t set = 0; set < sets; ++set) {
    std::int64_t begin = 0;
    for (std::uint32_t part = 0; part < parts.size(); ++part) {
      if (cut && parts[part] == 0) continue;
      lanes.push_back({set, begin, parts[part], cut ? part : placement.parallel == ParallelMode::cfg ? placement.of_set[set] : 0});
      begin += parts[part];
    }
  }
  return lanes;
}

SessionInputs::SessionInputs(const Graph& graph, const SessionSpec& spec) : graph_(graph), spec_(spec) {
  check();
  for (const GraphInput& input : graph.inputs) {
    if ((input.flags & HEDDLE_INPUT_BATCH) == 0 || input_rate(input) == Rate::scheduled) continue;
    const auto& given = infos(input_rate(input), 0);
    if (const auto found = given.find(input.name); found != given.end() && found->second.rank > 0)
      items_ = std::max(items_, found->second.shape[0]);
  }
  if (spec.placement.parallel == ParallelMode::data && items_ == 0)
    throw Error(Code::invalid_argument, "the batch cannot be split: no input of this model has one");
  lanes_ = session_lanes(spec.placement, std::uint32_t(spec.sets.size()), items_);
}

const SessionSpec::Infos& SessionInputs::infos(Rate rate, std::uint32_t set) const {
  return rate == Rate::constant ? spec_.sets[set].constants : rate == Rate::scheduled ? spec_.schedule : spec_.sets[set].steps;
}

bool SessionInputs::is_cut(const GraphInput& input, std::uint32_t lane) const {
  if (lanes_[lane].count == 0 || (input.flags & HEDDLE_INPUT_BATCH) == 0) return false;
  const auto& given = infos(input_rate(input), lanes_[lane].set);
  const auto found = given.find(input.name);
  return found != given.end() && found->second.rank > 0 && found->second.shape[0] == items_;
}

std::optional<heddle_tensor_info> SessionInputs::info(const GraphInput& input, std::uint32_t lane) const {
  const auto& given = infos(input_rate(input), lanes_[lane].set);
  const auto found = given.find(input.name);
  if (found == given.end()) return {};
  heddle_tensor_info info = found->second;
  if (is_cut(input, lane)) info.shape[0] = lanes_[lane].count;
  return info;
}

std::uint32_t SessionInputs::first_equal(const GraphInput& input, std::uint32_t lane) const {
  if (input_rate(input) == Rate::scheduled) return 0;
  if (is_cut(input, lane)) return lane;
  for (std::uint32_t other = 0; other < lane; ++other)
    if (lanes_[other].set == lanes_[lane].set) return other;
  return lane;
}

void SessionInputs::check() const {
  for (std::uint32_t set = 0; set < spec_.sets.size(); ++set) {
    for (const GraphInput& input : graph_.inputs) {
      const auto& given = infos(input_rate(input), set);
      const auto found = given.find(input.name);
      if (found == given.end() && (input.flags & HEDDLE_INPUT_OPTIONAL) == 0)
        throw Error(Code::invalid_argument, cat("the model's input ", quote(input.name), " is missing"));
      if (found != given.end() && input_rate(input) == Rate::scheduled &&
          (found->second.rank == 0 || found->second.shape[0] != std::int64_t(spec_.step_count)))
        throw Error(Code::invalid_argument, cat("the model's scheduled input ", quote(input.name), " is ", describe(found->second),
                                                ": its first axis has to be the ", spec_.step_count, " steps"));
    }
    for (const Rate rate : {Rate::constant, Rate::scheduled, Rate::step})
      for (const auto& [name, info] : infos(rate, set)) {
        const auto known = std::ranges::find_if(graph_.inputs, [&, &name = name](const GraphInput& i) { return i.name == name && input_rate(i) == rate; });
        if (known != graph_.inputs.end()) continue;
        std::vector<std::string_view> names;
        for (const GraphInput& i : graph_.inputs) names.push_back(i.name);
        throw Error(Code::invalid_argument, cat("the model has no ", rate == Rate::constant ? "constant" : rate == Rate::scheduled ? "scheduled" : "step",
                                                " input ", quote(name), "; it has ", join(names, ", "), ".", did_you_mean(name, names)));
      }
  }
}

}  // namespace heddle::core
