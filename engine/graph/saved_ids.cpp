#include "engine/graph/saved_ids.h"

#include <algorithm>
#include <unordered_set>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

using NewIds = std::unordered_map<std::string, std::string>;

// Of "12", not of "012" and "x".
std::optional<std::int64_t> number_of(const std::string& id) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (error != std::errc() || end != id.data() + id.size() || cat(number) != id)
    return std::nullopt;
  return number;
}

class Unique {
 public:
  explicit Unique(std::int64_t greatest) : greatest_(greatest) {}

  void keep(const std::string& id) { used_.insert(id); }

  NewIds rename(SavedGraph& graph) {
    NewIds renamed;
    for (SavedNode& node : graph.nodes) {
      if (used_.insert(node.id).second) {
        if (const auto number = number_of(node.id)) greatest_ = std::max(greatest_, *number);
        continue;
      }
      const std::string fresh = next();
      renamed.emplace(node.id, fresh);
      node.id = fresh;
    }
    return renamed;
  }

 private:
  std::string next() {
    do ++greatest_;
    while (!used_.insert(cat(greatest_)).second);
    return cat(greatest_);
  }

  std::unordered_set<std::string> used_;
  std::int64_t greatest_;
};

void follow(const NewIds& renamed, std::string& id) {
  if (const auto found = renamed.find(id); found != renamed.end()) id = found->second;
}

}  // namespace

void make_ids_unique(const Json& json, SavedWorkflow& workflow) {
  const Json* last = json.find("last_node_id");
  const bool is_sound = last != nullptr && last->kind() == Json::Kind::integer &&
                        last->as_int64() >= 0 && last->as_int64() < (std::int64_t{1} << 53);
  Unique unique(is_sound ? last->as_int64() : 0);
  for (const SavedNode& node : workflow.root().nodes) unique.keep(node.id);
  for (std::size_t g = 1; g < workflow.graphs.size(); ++g) {
    SavedGraph& graph = workflow.graphs[g];
    graph.renamed = unique.rename(graph);
    if (graph.renamed.empty()) continue;
    for (auto& [id, link] : graph.links) {
      follow(graph.renamed, link.origin);
      follow(graph.renamed, link.target);
    }
    graph.by_id.clear();
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) graph.by_id.emplace(graph.nodes[n].id, n);
  }
}

}  // namespace heddle::engine
