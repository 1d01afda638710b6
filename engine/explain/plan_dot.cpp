#include "engine/explain/plan_dot.h"

#include <algorithm>
#include <array>
#include <map>

#include "engine/base/text.h"
#include "engine/explain/plan_text.h"
#include "engine/graph/dag.h"
#include "engine/place/value_flow.h"

namespace heddle::engine {

namespace {

// Light enough for black text, and told apart by those who see red and green alike; devices beyond
// it begin anew.
constexpr std::array<std::string_view, 8> kPalette{"#a6cee3", "#fdbf6f", "#b2df8a", "#cab2d6",
                                                   "#fb9a99", "#ffff99", "#80cdc1", "#dfc27d"};
constexpr std::string_view kHostColour = "#e0e0e0";

std::string_view colour_of(std::uint32_t device) {
  return device == kHostSide ? kHostColour : kPalette[device % kPalette.size()];
}

std::uint32_t place_of(const Assignment& at) { return at.on_host ? kHostSide : at.device; }

std::string label_of(const Node& node, const Assignment& at, const Topology& topology) {
  std::string label = printable(node.type->name());
  if (!node.title.empty()) label += cat("\n", printable(node.title));
  if (at.stages)
    label +=
        cat("\n", at.stages->rounds,
            at.stages->deals_rounds() ? " chunks in turn over " : " chunks in a pipeline over ",
            device_names(at.stages->devices, topology));
  for (const PlacedCall& call : at.calls)
    if (call.placement.devices.size() > 1)
      label += cat("\n", printable(call.report.model), ": ", parallel_name(call.placement.parallel),
                   " over ", device_names(call.placement.devices, topology));
  return label;
}

std::string fill_of(const Assignment& at) {
  if (at.on_host) return std::string(kHostColour);
  std::vector<std::string_view> colours;
  for (const PlacedCall& call : at.calls)
    for (const std::uint32_t d : call.placement.devices)
      if (std::ranges::find(colours, colour_of(d)) == colours.end())
        colours.push_back(colour_of(d));
  if (colours.empty()) colours.push_back(colour_of(at.device));
  return join(colours, ":");
}

}  // namespace

std::string plan_dot(const Graph& graph, const Plan& plan, const Topology& topology) {
  Drawing drawing;
  std::vector<bool> used(topology.devices.size());
  bool host_used = false;
  std::map<NodeIndex, std::uint32_t> number;  // of the nodes that run
  for (const Step& step : plan.steps) {
    if (step.kind != Step::Kind::run) continue;
    const Assignment& at = plan.assignments[step.node];
    number.emplace(step.node, std::uint32_t(drawing.nodes.size()));
    drawing.nodes.push_back({label_of(graph.nodes[step.node], at, topology), fill_of(at)});
    if (at.on_host)
      host_used = true;
    else
      used[at.device] = true;
    for (const PlacedCall& call : at.calls)
      for (const std::uint32_t d : call.placement.devices) used[d] = true;
  }
  std::map<std::pair<Source, std::uint32_t>, std::uint64_t>
      crossing;  // value and destination: bytes
  for (const Step& step : plan.steps)
    if (step.kind == Step::Kind::transfer) crossing[{{step.node, step.port}, step.to}] = step.bytes;
  for (const auto& [reader, index] : number) {
    const Node& node = graph.nodes[reader];
    std::map<std::pair<Source, std::uint32_t>, bool>
        drawn;  // one edge, however often it is read there
    const auto draw = [&, reader = reader, index = index](const Binding& binding,
                                                          std::uint32_t flags) {
      const auto* link = std::get_if<Source>(&binding);
      if (link == nullptr || !number.contains(link->node)) return;
      const std::uint32_t to =
          (flags & HEDDLE_PORT_HOST) != 0 ? kHostSide : place_of(plan.assignments[reader]);
      if (!drawn.emplace(std::pair(*link, to), true).second) return;
      const auto found =
          (flags & HEDDLE_PORT_PASS) != 0 ? crossing.end() : crossing.find({*link, to});
      std::string label = printable(graph.nodes[link->node].type->output(link->port).name);
      const bool crosses = found != crossing.end();
      if (crosses) label += cat("\n", step_bytes_text(found->second));
      drawing.edges.push_back({number.at(link->node), index, label, crosses});
    };
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
      draw(node.inputs[i], node.type->input(i).flags);
    for (const auto& [name, binding] : node.extra) draw(binding, extra_flags(node));
  }
  for (std::uint32_t d = 0; d < used.size(); ++d)
    if (used[d])
      drawing.legend.emplace_back(
          printable(cat(topology.devices[d].name, " ", topology.devices[d].model)), colour_of(d));
  if (host_used) drawing.legend.emplace_back("host", kHostColour);
  return write_dot(drawing);
}

}  // namespace heddle::engine
