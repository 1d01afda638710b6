#include "engine/graph/without_blocks.h"

#include <algorithm>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

bool is_under(std::string_view id, std::string_view path) {
  return id.starts_with(path) && (id.size() == path.size() || id[path.size()] == '.');
}

class Remover {
 public:
  Remover(const Graph& graph, const std::vector<std::string>& paths) : graph_(graph) {
    NodeIndex next = 0;
    for (const Node& node : graph.nodes) {
      const bool left_out = std::ranges::any_of(
          paths, [&](const std::string& path) { return is_under(node.id, path); });
      place_.push_back(left_out ? kGraphInputs : next++);
    }
  }

  Graph run() const {
    Graph rest;
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      if (is_left_out(n)) continue;
      Node node = graph_.nodes[n];
      for (Binding& binding : node.inputs)
        if (auto* source = std::get_if<Source>(&binding)) *source = read_instead(*source);
      rest.nodes.push_back(std::move(node));
    }
    rest.inputs = graph_.inputs;
    for (const GraphOutput& output : graph_.outputs)
      rest.outputs.push_back({output.name, read_instead(output.from)});
    for (const NodeIndex n : graph_.order)
      if (!is_left_out(n)) rest.order.push_back(place_[n]);
    return rest;
  }

 private:
  bool is_left_out(NodeIndex node) const { return place_[node] == kGraphInputs; }

  Source read_instead(Source source) const {
    while (source.node != kGraphInputs && is_left_out(source.node)) source = passed_by(source);
    if (source.node != kGraphInputs) source.node = place_[source.node];
    return source;
  }

  // What the input of the same name of a node that is left out reads.
  Source passed_by(const Source& source) const {
    const Node& node = graph_.nodes[source.node];
    const std::string_view name = node.type->output(source.port).name;
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      if (name != node.type->input(i).name) continue;
      if (const auto* link = std::get_if<Source>(&node.inputs[i])) return *link;
    }
    throw Error(Code::invalid_argument,
                cat("block ", node.id, " cannot be left out: others read its ", quote(name),
                    ", and it has no input of that name to take in its place"));
  }

  const Graph& graph_;
  std::vector<NodeIndex> place_;  // in the rest; kGraphInputs: left out
};

}  // namespace

Graph without_blocks(const Graph& graph, const std::vector<std::string>& paths) {
  return Remover(graph, paths).run();
}

}  // namespace heddle::engine
