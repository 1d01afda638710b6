#include "engine/graph/prompt_limit.h"

#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

std::optional<std::string> prompt_fault(const heddle_port& port, const heddle_value& value,
                                        std::uint64_t limit) {
  if ((port.flags & HEDDLE_PORT_PROMPT) == 0) return std::nullopt;
  const auto* text = std::get_if<std::string>(&value.content);
  if (text == nullptr || text->size() <= limit) return std::nullopt;
  return cat("the prompt has ", text->size(), " bytes, more than the limit of ", limit,
             ". Shorten it, or raise the limit with --prompt-limit ",
             "(EngineOptions::prompt_limit).");
}

void check_known_prompts(const Graph& graph,
                         const std::function<const heddle_value*(const Source&)>& known,
                         std::uint64_t limit) {
  std::vector<std::string> faults;
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      const heddle_value* value = link == nullptr ? nullptr : known(*link);
      if (value == nullptr) continue;
      if (const auto fault = prompt_fault(node.type->input(i), *value, limit))
        faults.push_back(
            cat(graph.name_of(n), ", input ", quote(node.type->input(i).name), ": ", *fault));
    }
  }
  if (!faults.empty()) throw Error(Code::invalid_argument, join(faults, "\n"));
}

}  // namespace heddle::engine
