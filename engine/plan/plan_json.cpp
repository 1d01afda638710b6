#include "engine/plan/plan_text.h"

#include "engine/base/text.h"

namespace heddle::core {

namespace {

Json devices_json(const std::vector<std::uint32_t>& devices, const Topology& topology) {
  Json list = Json::array();
  for (const std::uint32_t d : devices) list.push(device_name(d, topology));
  return list;
}

Json step_json(const Graph& graph, const Plan& plan, const Step& step, const Topology& topology) {
  const Node& node = graph.nodes[step.node];
  Json one = Json::object();
  switch (step.kind) {
    case Step::Kind::run:
      one.set("kind", "run").set("node", node.id).set("class", node.type->name()).set("device", device_name(step.to, topology));
      one.set("devices", devices_json(plan.places[step.node].devices, topology)).set("reason", plan.places[step.node].reason);
      break;
    case Step::Kind::transfer:
      one.set("kind", "transfer").set("node", node.id).set("output", node.type->output(step.port).name);
      one.set("from", device_name(step.from, topology)).set("to", device_name(step.to, topology));
      break;
    case Step::Kind::release:
      one.set("kind", "release").set("node", node.id).set("output", node.type->output(step.port).name).set("device", device_name(step.to, topology));
      break;
  }
  if (step.bytes != kUnknownBytes) one.set("bytes", step.bytes);
  Json after = Json::array();
  for (const std::uint32_t a : step.after) after.push(a);
  one.set("after", std::move(after));
  return one;
}

}  // namespace

Json plan_json(const Graph& graph, const Plan& plan, const Topology& topology) {
  Json steps = Json::array(), pending = Json::array(), warnings = Json::array();
  for (const Step& step : plan.steps) steps.push(step_json(graph, plan, step, topology));
  for (const std::string& p : plan.pending) pending.push(p);
  for (const std::string& w : plan.warnings) warnings.push(w);
  Json json = Json::object();
  json.set("seconds", plan.seconds).set("steps", std::move(steps)).set("pending", std::move(pending)).set("warnings", std::move(warnings));
  return json;
}

}  // namespace heddle::core
