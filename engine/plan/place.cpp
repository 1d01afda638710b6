#include "engine/plan/place.h"

#include <algorithm>
#include <optional>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::core {

Placement place(const Graph& graph, const Inferred&, const Topology& topology) {
  Placement placement;
  auto& places = placement.places;
  places.resize(graph.nodes.size());
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    Assignment& to = places[n];
    if (!node.hints.device.empty()) {
      try {
        const NamedDevices wanted = find_devices(node.hints.device, topology);
        to = {wanted.devices.front(), {}, false, "hint of the node", {}};
      } catch (Error& error) {
        error.at(graph.name_of(n));
        throw;
      }
    } else if (!node.hints.prefer.empty()) {
      try {
        to = {find_devices(node.hints.prefer, topology).devices.front(), {}, false, "preference of the node", {}};
      } catch (const Error&) {
        to = {0, {}, false, cat("first device; the preferred ", node.hints.prefer, " is not there"), {}};
      }
    } else {
      std::optional<std::uint32_t> producer;
      for_each_binding(node, [&](const Binding& b) {
        const auto* link = std::get_if<Source>(&b);
        if (link != nullptr && link->node != kGraphInputs && !producer && !places[link->node].on_host) producer = link->node;
      });
      to = producer ? Assignment{places[*producer].device, {}, false, cat("where ", graph.nodes[*producer].id, " is"), {}}
                    : Assignment{0, {}, false, "first device", {}};
    }
    to.on_host = node.type->has(HEDDLE_NODE_HOST);
    if (to.on_host) to.reason = "host-only";
    to.devices = {to.device};
  }
  return placement;
}

Placement place_on_first(const Graph& graph) {
  Placement placement;
  placement.places.resize(graph.nodes.size());
  for (const NodeIndex n : graph.order) placement.places[n] = {0, {0}, graph.nodes[n].type->has(HEDDLE_NODE_HOST), "first device", {}};
  return placement;
}

}  // namespace heddle::core
