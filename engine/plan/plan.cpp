#include "engine/plan/plan.h"

#include <algorithm>
#include <map>
#include <optional>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::core {

namespace {

std::string names_of(const std::vector<PlaceInfo>& devices) {
  std::vector<std::string> names;
  for (const PlaceInfo& d : devices) names.push_back(d.name);
  return join(names, ", ");
}

}  // namespace

std::vector<std::uint32_t> find_devices(std::string_view text, const std::vector<PlaceInfo>& devices) {
  std::vector<std::uint32_t> found;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view one = text.substr(begin, comma - begin);
    bool known = false;
    for (std::uint32_t d = 0; d < devices.size(); ++d)
      if (one == devices[d].name || one == devices[d].kind) {
        known = true;
        if (std::ranges::find(found, d) == found.end()) found.push_back(d);
      }
    if (!known) throw Error(Code::not_found, cat("there is no device ", quote(one), "; there are: ", names_of(devices)));
    begin = comma + 1;
  }
  return found;
}

std::vector<Assignment> place(const Graph& graph, const std::vector<PlaceInfo>& devices) {
  std::vector<Assignment> places(graph.nodes.size());
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    Assignment& to = places[n];
    if (!node.hints.device.empty()) {
      std::vector<std::uint32_t> wanted;
      try {
        wanted = find_devices(node.hints.device, devices);
      } catch (Error& error) {
        error.at(graph.name_of(n));
        throw;
      }
      to = {wanted.front(), false, "hint of the node"};
    } else if (!node.hints.prefer.empty()) {
      try {
        to = {find_devices(node.hints.prefer, devices).front(), false, "preference of the node"};
      } catch (const Error&) {
        to = {0, false, cat("first device; the preferred ", node.hints.prefer, " is not there")};
      }
    } else {
      std::optional<std::uint32_t> producer;
      for_each_binding(node, [&](const Binding& b) {
        const auto* link = std::get_if<Source>(&b);
        if (link != nullptr && link->node != kGraphInputs && !producer && !places[link->node].on_host) producer = link->node;
      });
      to = producer ? Assignment{places[*producer].device, false, cat("where ", graph.nodes[*producer].id, " is")}
                    : Assignment{0, false, "first device"};
    }
    if (node.type->has(HEDDLE_NODE_HOST)) to = {to.device, true, "host-only"};
  }
  return places;
}

Plan make_plan(const Graph& graph, std::vector<Assignment> places, const std::vector<PlaceInfo>& devices) {
  Plan plan;
  plan.places = std::move(places);
  std::vector<std::uint32_t> made(graph.nodes.size(), 0);
  std::map<std::pair<Source, std::uint32_t>, std::uint32_t> sent;
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    const Assignment& here = plan.places[n];
    std::vector<std::uint32_t> after;
    const auto read = [&](const Source& source, std::uint32_t flags) {
      const Assignment& there = plan.places[source.node];
      const bool from_host_side = there.on_host || devices[there.device].host_visible;
      const bool to_host_side = here.on_host || devices[here.device].host_visible;
      const bool stays = (flags & HEDDLE_PORT_PASS) != 0 || (there.device == here.device && there.on_host == here.on_host) ||
                         (from_host_side && to_host_side);
      if (stays) {
        after.push_back(made[source.node]);
        return;
      }
      const auto [at, is_new] = sent.try_emplace({source, here.device}, 0);
      if (is_new) {
        plan.steps.push_back({Step::Kind::transfer, 0, source, there.device, here.device, {made[source.node]}});
        at->second = std::uint32_t(plan.steps.size() - 1);
      }
      after.push_back(at->second);
    };
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
      if (const auto* link = std::get_if<Source>(&node.inputs[i])) read(*link, node.type->input(i).flags);
    for (const auto& [name, binding] : node.extra)
      if (const auto* link = std::get_if<Source>(&binding)) read(*link, 0);
    std::ranges::sort(after);
    after.erase(std::ranges::unique(after).begin(), after.end());
    plan.steps.push_back({Step::Kind::run, n, {}, here.device, here.device, std::move(after)});
    made[n] = std::uint32_t(plan.steps.size() - 1);
  }
  return plan;
}

std::string plan_text(const Graph& graph, const Plan& plan, const std::vector<PlaceInfo>& devices) {
  std::string text;
  std::uint32_t runs = 0, transfers = 0;
  for (const Step& step : plan.steps) ++(step.kind == Step::Kind::run ? runs : transfers);
  text += cat(runs, " runs, ", transfers, " transfers on ", names_of(devices), "\n");
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.kind == Step::Kind::run) {
      const Node& node = graph.nodes[step.node];
      const Assignment& at = plan.places[step.node];
      text += cat(i, " run ", node.id, " ", node.type->name(), node.title.empty() ? "" : cat(" \"", node.title, "\""), " on ",
                  at.on_host ? std::string("host") : devices[at.device].name, " (", at.reason, ")");
    } else {
      const Node& node = graph.nodes[step.value.node];
      text += cat(i, " transfer ", node.id, ".", node.type->output(step.value.port).name, " ", devices[step.from].name, " -> ", devices[step.to].name);
    }
    if (!step.after.empty()) text += cat(" after ", join(step.after, ","));
    text += "\n";
  }
  for (const std::string& pending : plan.pending) text += cat("pending: ", pending, "\n");
  return text;
}

}  // namespace heddle::core
