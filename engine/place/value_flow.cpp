#include "engine/place/value_flow.h"

#include "heddle/abi/parts.h"

namespace heddle::engine {

namespace {

// By node, where its outputs begin when those of all nodes stand one after another.
std::vector<std::uint32_t> first_outputs(const Graph& graph, std::uint32_t& count) {
  std::vector<std::uint32_t> first;
  first.reserve(graph.nodes.size());
  count = 0;
  for (const Node& node : graph.nodes) {
    first.push_back(count);
    count += node.type->output_count();
  }
  return first;
}

}  // namespace

std::vector<std::uint32_t> find_homes(const Graph& graph, const std::vector<Assignment>& places,
                                      const std::vector<NodeIndex>& order, const Inferred* inferred,
                                      const Topology* topology) {
  std::uint32_t count = 0;
  const std::vector<std::uint32_t> first = first_outputs(graph, count);
  std::vector<std::uint32_t> homes(count);
  for (const NodeIndex n : order)
    for (std::uint32_t o = 0; o < graph.nodes[n].type->output_count(); ++o) {
      std::uint32_t& home = homes[first[n] + o] = side_of(places[n]);
      const bool is_shared = inferred != nullptr && inferred->nodes[n].outputs[o].is_shared;
      bool is_found = false;
      const auto visit = [&](const Source& source, std::uint32_t flags) {
        if (is_found) return;
        const std::uint32_t from = homes[first[source.node] + source.port];
        if (inferred == nullptr) {
          home = from;
        } else {
          const NodeType& type = *graph.nodes[source.node].type;
          const std::uint64_t bytes = bytes_of(inferred->nodes[source.node].outputs[source.port],
                                               type.output(source.port).type);
          if (bytes == 0) return;
          home = read_at(places[n], flags, from, bytes, *topology);
        }
        is_found = true;
      };
      for_each_passed_on(graph.nodes[n], o, is_shared, visit);
    }
  return homes;
}

ValueHomes::ValueHomes(const Graph& graph, const Plan& plan) {
  std::uint32_t count = 0;
  first_ = first_outputs(graph, count);
  homes_ = !plan.homes.empty()
               ? plan.homes
               : find_homes(graph, plan.assignments, plan.order.empty() ? graph.order : plan.order,
                            nullptr, nullptr);
}

std::vector<std::vector<Source>> read_in_parts(const Graph& graph,
                                               const std::vector<Assignment>& places) {
  std::vector<std::vector<Source>> read(graph.nodes.size());
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    if (!takes_parts(node, places[n])) continue;
    for_each_link(node, [&](const Source& source, std::uint32_t flags) {
      const heddle_port& made = graph.nodes[source.node].type->output(source.port);
      if ((flags & made.flags & HEDDLE_PORT_PARTS) == 0) return;
      bool is_whole = places[source.node].on_host && read[source.node].empty();
      for_each_link(node, [&](const Source& other, std::uint32_t flags_of_other) {
        is_whole |= other.node == source.node && (flags_of_other & HEDDLE_PORT_PARTS) == 0;
      });
      if (!is_whole) read[n].push_back(source);
    });
  }
  return read;
}

}  // namespace heddle::engine
