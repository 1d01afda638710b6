// What becomes of a value between the node that makes it and those that read it: where its tensors
// are made, where a reader needs them, whether they are copied on the way, and whose reading keeps
// which copy. A plan's steps and runs both ask here, so that a plan is what a run does.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/place/plan.h"
#include "engine/place/topology.h"

namespace heddle::engine {

// Those of the port that an undeclared input would have.
inline std::uint32_t extra_flags(const Node& node) {
  return node.type->has(HEDDLE_NODE_PASS_EXTRA) ? std::uint32_t{HEDDLE_PORT_PASS} : 0;
}

// visit(source, flags of the port) for every link into a node.
template <class Visit>
void for_each_link(const Node& node, Visit&& visit) {
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
    if (const auto* link = std::get_if<Source>(&node.inputs[i]))
      visit(*link, node.type->input(i).flags);
  for (const auto& [name, binding] : node.extra)
    if (const auto* link = std::get_if<Source>(&binding)) visit(*link, extra_flags(node));
}

// Where a node makes its own tensors: a device, or kHostSide.
inline std::uint32_t side_of(const Assignment& place) {
  return place.on_host ? kHostSide : place.device;
}

// Where a node at `reader` reads a value of these bytes (kUnknownBytes: tensors of unknown size)
// whose tensors are at `home`, through a port with these flags. A value is copied to there where
// that is not its home, once for all that read it there, and the copy is released after the last of
// them. The value itself is released after all that read it at its home and after the last copy.
inline std::uint32_t read_at(const Assignment& reader, std::uint32_t flags, std::uint32_t home,
                             std::uint64_t bytes, const Topology& topology) {
  if ((flags & HEDDLE_PORT_PASS) != 0 || bytes == 0) return home;  // nobody looks at tensors
  const std::uint32_t wanted = (flags & HEDDLE_PORT_HOST) != 0 ? kHostSide : side_of(reader);
  return topology.link(home, wanted).kind == LinkFacts::Kind::same ? home : wanted;
}

// Whether a node can read outputs while they are being made (heddle/abi/parts.h), of the ports that
// have the flag.
inline bool takes_parts(const Node& node, const Assignment& place) {
  return place.on_host && !node.is_mapped && !node.type->takes_lists() &&
         node.type->desc().need == nullptr && !node.type->has(HEDDLE_NODE_EXPANDS);
}
// By node, the outputs that it may read so: those that a device makes, and those that are passed on
// so. Whether they really begin before they are whole is for their maker to say, when it runs.
std::vector<std::vector<Source>> read_in_parts(const Graph& graph,
                                               const std::vector<Assignment>& places);

// visit(source, flags of the port) for every link whose tensors are inside of an output. None: the
// node makes them. A port that is looked at without tensors passes them on in outputs of its type,
// or that are `is_shared`, as inference tells; one that is read does so in shared outputs of its
// type, and what is passed on is then the copy that was read: read_at() tells where it is.
template <class Visit>
void for_each_passed_on(const Node& node, std::uint32_t output, bool is_shared, Visit&& visit) {
  const std::string_view type = node.type->output(output).type;
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    const heddle_port& port = node.type->input(i);
    const bool is_same = port.type == type, is_read = (port.flags & HEDDLE_PORT_PASS) == 0;
    if (is_read ? !(is_shared && is_same) : !(is_shared || is_same)) continue;
    if (const auto* link = std::get_if<Source>(&node.inputs[i])) visit(*link, port.flags);
  }
}

// By output, one node after another, where its tensors are made: a device, or kHostSide. Of several
// that are passed on the first that has any decides. `inferred` nullptr: nothing is known, and the
// topology is not asked for either. `order`: topological; nodes that are not in it have no values.
// Linear in nodes and links.
std::vector<std::uint32_t> find_homes(const Graph& graph, const std::vector<Assignment>& places,
                                      const std::vector<NodeIndex>& order, const Inferred* inferred,
                                      const Topology* topology);

// Those of a plan, by value.
class ValueHomes {
 public:
  // A plan that says nothing of homes was made without inference.
  ValueHomes(const Graph& graph, const Plan& plan);
  // A device, or kHostSide.
  std::uint32_t of(const Source& source) const { return homes_[first_[source.node] + source.port]; }

 private:
  std::vector<std::uint32_t> first_;  // by node, in homes_
  std::vector<std::uint32_t> homes_;
};

}  // namespace heddle::engine
