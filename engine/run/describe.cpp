#include "engine/run/describe.h"

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/graph/model.h"
#include "engine/place/place.h"
#include "engine/program/weight_sources.h"
#include "engine/run/executor.h"
#include "engine/tensor/dtype.h"

namespace heddle::engine {

namespace {

std::uint64_t weight_bytes(const Model& model) {
  std::uint64_t bytes = 0;
  for (const Node& node : model.graph->nodes)
    for (const auto& source : weight_sources(model, node))
      if (source) bytes += dense_bytes(source->info());
  return bytes;
}

void collect(const heddle_value& value, const Source& source, const std::string& field,
             std::vector<ModelSummary>& models) {
  const auto below = [&](const std::string& name) {
    return field.empty() ? name : cat(field, ".", name);
  };
  if (const auto* model = std::get_if<std::shared_ptr<const Model>>(&value.content)) {
    models.push_back(
        {source, field, (*model)->family, (*model)->graph->nodes.size(), weight_bytes(**model)});
  } else if (const auto* list = std::get_if<List>(&value.content)) {
    for (std::size_t i = 0; i < list->items.size(); ++i)
      collect(*list->items[i], source, below(std::to_string(i)), models);
  } else if (const auto* record = std::get_if<Record>(&value.content)) {
    for (const auto& [name, inner] : record->fields) collect(*inner, source, below(name), models);
  }
}

}  // namespace

Described describe_models(const Graph& graph, Environment& environment) {
  Described described{{}, std::vector<bool>(graph.nodes.size(), false), {}};
  RunRequest request;
  std::vector<NodeIndex> order;
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    bool known = node.type->has(HEDDLE_NODE_DESCRIBES);
    for_each_binding(node, [&](const Binding& b) {
      const auto* link = std::get_if<Source>(&b);
      known = known && (link == nullptr || described.known[link->node]);
    });
    described.known[n] = known;
    if (known) order.push_back(n);
    for (std::uint32_t o = 0; known && o < node.type->output_count(); ++o)
      request.fetch.push_back({n, o});
  }
  if (request.fetch.empty()) return described;
  // Only these: a graph without sinks runs what is kept.
  Graph headers = graph;
  headers.sinks.clear();
  headers.order = std::move(order);
  Inferred nothing;
  for (const Node& node : headers.nodes)
    nothing.nodes.emplace_back().outputs.resize(node.type->output_count());
  const Plan plan = make_plan(headers, place_on_first(headers), nothing, environment.topology);
  request.graph = &headers;
  request.plan = &plan;
  NullObserver quiet;
  RunControl control;
  RunResult result = execute(request, environment, quiet, control);
  // Of what is blocked nothing is known that a node could be asked about.
  std::erase_if(result.fetched, [](const auto& made) { return find_blocker(*made.second); });
  for (const auto& [source, value] : result.fetched) collect(*value, source, "", described.models);
  described.facts = std::move(result.fetched);
  return described;
}

}  // namespace heddle::engine
