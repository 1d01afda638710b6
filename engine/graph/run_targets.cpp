#include "engine/graph/run_targets.h"

#include <algorithm>
#include <unordered_map>

#include "engine/base/text.h"

namespace heddle::engine {

namespace {

constexpr const char* kKey = "partial_execution_targets";
constexpr std::size_t kMostShown = 16;

bool is_list_of_ids(const Json& json) {
  return json.is_array() && std::ranges::all_of(json.as_array(), &Json::is_string);
}

std::string id_and_class(const WorkflowNode& node) {
  return cat(quote(node.id), " (", node.class_type, ")");
}

std::string those_there_are(const Workflow& workflow, const std::vector<NodeIndex>& sinks) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(sinks.size(), kMostShown); ++i)
    names.push_back(id_and_class(workflow.nodes[sinks[i]]));
  return names.empty() ? "" : cat(" Nodes that do: ", join(names, ", "), ".");
}

}  // namespace

void set_targets(Workflow& workflow, const std::vector<std::string>& ids) {
  if (ids.empty() && workflow.rest.find(kKey) == nullptr) return;
  Json list = Json::array();
  for (const std::string& id : ids) list.push(id);
  workflow.rest.set(kKey, ids.empty() ? Json() : std::move(list));
}

std::vector<NodeIndex> wanted_sinks(const Workflow& workflow, std::vector<NodeIndex> sinks,
                                    std::vector<std::string>& problems) {
  const Json* ids = workflow.rest.find(kKey);
  if (ids == nullptr || ids->is_null()) return sinks;
  if (!is_list_of_ids(*ids)) {
    problems.push_back(
        cat(quote(kKey), " needs a list of ids of nodes, as texts, got ", ids->describe(), "."));
    return {};
  }
  if (ids->size() == 0)
    problems.push_back(cat(quote(kKey),
                           " is empty, so there is nothing to do. Name a node in it, "
                           "or leave it out to run for all.",
                           those_there_are(workflow, sinks)));
  std::unordered_map<std::string_view, NodeIndex> by_id;
  for (const NodeIndex i : sinks) by_id.emplace(workflow.nodes[i].id, i);
  std::vector<NodeIndex> wanted;
  for (const Json& json : ids->as_array()) {
    const std::string& id = json.as_string();
    if (const auto found = by_id.find(id); found != by_id.end()) {
      wanted.push_back(found->second);
      continue;
    }
    if (problems.size() >= kMostShown) continue;
    const WorkflowNode* const node = workflow.find(id);
    problems.push_back(cat(node == nullptr
                               ? cat("there is no node ", quote(id), " to run for.")
                               : cat("node ", id_and_class(*node),
                                     " saves or shows nothing, so nothing can be run for it."),
                           those_there_are(workflow, sinks)));
  }
  std::ranges::sort(wanted);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

}  // namespace heddle::engine
