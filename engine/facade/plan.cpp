// The plan of a workflow, as text and as JSON.
#include <algorithm>

#include "engine/base/text.h"
#include "engine/explain/plan_dot.h"
#include "engine/explain/plan_text.h"
#include "engine/facade/data.h"
#include "engine/facade/inputs.h"
#include "engine/session/memory_requirement.h"

namespace heddle {

namespace {

using core::cat;
using core::Json;

std::string output_name(const core::Graph& graph, const core::ModelSummary& model) {
  const core::Node& node = graph.nodes[model.source.node];
  return cat(node.id, ".", node.type->output(model.source.port).name,
             model.field.empty() ? "" : ".", model.field);
}

}  // namespace

Ready Engine::Data::prepare_to_show(const std::shared_ptr<const Workflow::Data>& flow, Inputs inputs, bool must_fit) const {
  const TakenInputs taken = take_inputs(std::move(inputs));
  const std::shared_ptr<const Workflow::Data> given = with_inputs(flow, taken);
  return prepare(*given, {Describe::strictly, {}, values_of(*given, taken), {}, must_fit});
}

std::string Engine::plan(const Workflow& flow, Inputs inputs) const {
  return outward([&] {
    const Ready ready = data_->prepare_to_show(flow.data_, std::move(inputs));
    std::string text = core::plan_text(ready.graph, ready.plan, data_->environment->topology);
    for (const core::ModelSummary& model : ready.described.models)
      text += cat("model ", core::printable(output_name(ready.graph, model)), ": ", core::printable(model.family), ", ", model.blocks,
                  " blocks, ", core::format_bytes(model.weight_bytes), " of weights\n");
    return text;
  });
}

namespace {

// What the host's budget has to be at least, by node, behind the devices'.
void tell_host_least(const std::vector<core::HostNeed>& needs, const core::Graph& graph, std::string& text, Json& devices) {
  if (needs.empty()) return;
  const core::HostNeed& decides = *std::ranges::max_element(needs, {}, &core::HostNeed::least_bytes);
  text += cat("host: at least ", core::format_bytes(decides.least_bytes), " (", decides.least_bytes, " bytes), by node ", core::printable(graph.nodes[decides.node].id), "\n");
  Json nodes = Json::array();
  for (const core::HostNeed& need : needs) {
    const std::string& node = graph.nodes[need.node].id;
    const std::string reason = need.values_bytes > 0 ? cat(core::format_bytes(need.values_bytes), " for the node's values")
                                                     : cat(core::format_bytes(need.reading_bytes), " for reading weights");
    text += cat("  ", core::printable(node), ": ", core::format_bytes(need.least_bytes), "; ", reason, "\n");
    nodes.push(std::move(Json::object().set("node", node).set("least_bytes", need.least_bytes).set("reason", reason)));
  }
  devices.push(std::move(Json::object().set("device", "host").set("least_bytes", decides.least_bytes).set("nodes", std::move(nodes))));
}

}  // namespace

std::string Engine::plan_least(const Workflow& flow, bool as_json) const {
  return outward([&] {
    const Ready ready = data_->prepare_to_show(flow.data_, {}, false);
    const core::Topology& topology = data_->environment->topology;
    const core::LeastNeeds all = core::least_needs(ready.graph, ready.plan, ready.inferred, topology, *data_->environment);
    std::map<std::uint32_t, const core::LeastNeed*> most;  // by device: the node that decides
    for (const core::LeastNeed& need : all.needs) {
      const core::LeastNeed*& of = most[need.device];
      if (of == nullptr || need.least_bytes > of->least_bytes) of = &need;
    }
    std::string text;
    Json devices = Json::array();
    for (const auto& [d, decides] : most) {
      text += cat(topology.devices[d].name, ": at least ", core::format_bytes(decides->least_bytes), " (", decides->least_bytes, " bytes), by node ",
                  core::printable(ready.graph.nodes[decides->node].id), "\n");
      Json nodes = Json::array();
      for (const core::LeastNeed& need : all.needs) {
        if (need.device != d) continue;
        text += cat("  ", core::printable(ready.graph.nodes[need.node].id), ": ", core::format_bytes(need.least_bytes),
                    need.all_bytes > need.least_bytes ? cat(", nothing streamed with ", core::format_bytes(need.all_bytes)) : "", "; ", core::printable(need.reason), "\n");
        nodes.push(std::move(Json::object()
                                 .set("node", ready.graph.nodes[need.node].id)
                                 .set("least_bytes", need.least_bytes)
                                 .set("all_bytes", need.all_bytes)
                                 .set("reason", need.reason)));
      }
      devices.push(std::move(Json::object().set("device", topology.devices[d].name).set("least_bytes", decides->least_bytes).set("nodes", std::move(nodes))));
    }
    tell_host_least(core::host_needs(ready.graph, ready.plan, ready.inferred, all.needs, *data_->environment), ready.graph, text, devices);
    if (most.empty()) text += "no node is known to need memory of a device\n";
    for (const std::string& why : all.left_out) text += cat("not known: ", core::printable(why), "\n");
    return as_json ? core::write_json(devices, 2) : text;
  });
}

std::vector<PlannedCall> Engine::planned_calls(const Workflow& flow, Inputs inputs) const {
  return outward([&] {
    const Ready ready = data_->prepare_to_show(flow.data_, std::move(inputs));
    std::vector<PlannedCall> calls;
    for (const core::NodeIndex n : ready.graph.order)
      for (const core::PlacedCall& call : ready.plan.places[n].calls)
        calls.push_back({ready.graph.nodes[n].id, call.report.model, std::string(core::parallel_name(call.placement.parallel)), call.seconds,
                         call.step_seconds, call.load_seconds, call.report.step_count > 0 ? call.report.step_flops : 0});
    return calls;
  });
}

std::string Engine::plan_dot(const Workflow& flow, Inputs inputs) const {
  return outward([&] {
    const Ready ready = data_->prepare_to_show(flow.data_, std::move(inputs));
    return core::plan_dot(ready.graph, ready.plan, data_->environment->topology);
  });
}

std::string Engine::plan_json(const Workflow& flow, Inputs inputs) const {
  return outward([&] {
    const Ready ready = data_->prepare_to_show(flow.data_, std::move(inputs));
    Json plan = core::plan_json(ready.graph, ready.plan, data_->environment->topology);
    Json models = Json::array();
    for (const core::ModelSummary& model : ready.described.models)
      models.push(std::move(Json::object()
                                .set("output", output_name(ready.graph, model))
                                .set("family", model.family)
                                .set("blocks", model.blocks)
                                .set("weight_bytes", model.weight_bytes)));
    plan.set("models", std::move(models));
    return core::write_json(plan, 2);
  });
}

}  // namespace heddle
