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

using engine::cat;
using engine::Json;

std::string output_name(const engine::Graph& graph, const engine::ModelSummary& model) {
  const engine::Node& node = graph.nodes[model.source.node];
  return cat(node.id, ".", node.type->output(model.source.port).name,
             model.field.empty() ? "" : ".", model.field);
}

}  // namespace

Ready Engine::Data::prepare_to_show(const std::shared_ptr<const Workflow::Data>& flow,
                                    Inputs inputs, bool must_fit) const {
  const TakenInputs taken = take_inputs(std::move(inputs));
  const std::shared_ptr<const Workflow::Data> given = with_inputs(flow, taken);
  return prepare(*given, {Describe::strictly, {}, values_of(*given, taken), {}, must_fit});
}

std::string Engine::plan(const Workflow& flow, Inputs inputs) const {
  return translate_errors([&] {
    const Ready ready = data_->prepare_to_show(flow.data_, std::move(inputs));
    std::string text = engine::plan_text(ready.graph, ready.plan, data_->environment->topology);
    for (const engine::ModelSummary& model : ready.described.models)
      text += cat("model ", engine::printable(output_name(ready.graph, model)), ": ",
                  engine::printable(model.family), ", ", model.blocks, " blocks, ",
                  engine::format_bytes(model.weight_bytes), " of weights\n");
    return text;
  });
}

namespace {

// What the host's budget has to be at least, by node, behind the devices'.
void report_host_memory(const std::vector<engine::HostRequirement>& needs,
                        const engine::Graph& graph, std::string& text, Json& devices) {
  if (needs.empty()) return;
  const engine::HostRequirement& decides =
      *std::ranges::max_element(needs, {}, &engine::HostRequirement::min_bytes);
  text += cat("host: at least ", engine::format_bytes(decides.min_bytes), " (", decides.min_bytes,
              " bytes), by node ", engine::printable(graph.nodes[decides.node].id), "\n");
  Json nodes = Json::array();
  for (const engine::HostRequirement& need : needs) {
    const std::string& node = graph.nodes[need.node].id;
    const std::string reason =
        need.values_bytes > 0
            ? cat(engine::format_bytes(need.values_bytes), " for the node's values")
            : cat(engine::format_bytes(need.reading_bytes), " for reading weights");
    text += cat("  ", engine::printable(node), ": ", engine::format_bytes(need.min_bytes), "; ",
                reason, "\n");
    nodes.push(std::move(
        Json::object().set("node", node).set("min_bytes", need.min_bytes).set("reason", reason)));
  }
  devices.push(std::move(Json::object()
                             .set("device", "host")
                             .set("min_bytes", decides.min_bytes)
                             .set("nodes", std::move(nodes))));
}

}  // namespace

std::string Engine::plan_min_memory(const Workflow& flow, bool as_json) const {
  return translate_errors([&] {
    const Ready ready = data_->prepare_to_show(flow.data_, {}, false);
    const engine::Topology& topology = data_->environment->topology;
    const engine::MemoryRequirements all = engine::memory_requirements(
        ready.graph, ready.plan, ready.inferred, topology, *data_->environment);
    std::map<std::uint32_t, const engine::MemoryRequirement*>
        most;  // by device: the node that decides
    for (const engine::MemoryRequirement& need : all.needs) {
      const engine::MemoryRequirement*& of = most[need.device];
      if (of == nullptr || need.min_bytes > of->min_bytes) of = &need;
    }
    std::string text;
    Json devices = Json::array();
    for (const auto& [d, decides] : most) {
      text += cat(topology.devices[d].name, ": at least ", engine::format_bytes(decides->min_bytes),
                  " (", decides->min_bytes, " bytes), by node ",
                  engine::printable(ready.graph.nodes[decides->node].id), "\n");
      Json nodes = Json::array();
      for (const engine::MemoryRequirement& need : all.needs) {
        if (need.device != d) continue;
        text += cat("  ", engine::printable(ready.graph.nodes[need.node].id), ": ",
                    engine::format_bytes(need.min_bytes),
                    need.all_bytes > need.min_bytes
                        ? cat(", nothing streamed with ", engine::format_bytes(need.all_bytes))
                        : "",
                    "; ", engine::printable(need.reason), "\n");
        nodes.push(std::move(Json::object()
                                 .set("node", ready.graph.nodes[need.node].id)
                                 .set("min_bytes", need.min_bytes)
                                 .set("all_bytes", need.all_bytes)
                                 .set("values_bytes", need.values_bytes)
                                 .set("reason", need.reason)));
      }
      devices.push(std::move(Json::object()
                                 .set("device", topology.devices[d].name)
                                 .set("min_bytes", decides->min_bytes)
                                 .set("nodes", std::move(nodes))));
    }
    report_host_memory(engine::host_requirements(ready.graph, ready.plan, ready.inferred, all.needs,
                                                 *data_->environment),
                       ready.graph, text, devices);
    if (most.empty()) text += "no node is known to need memory of a device\n";
    for (const std::string& why : all.left_out)
      text += cat("not known: ", engine::printable(why), "\n");
    return as_json ? engine::write_json(devices, 2) : text;
  });
}

std::vector<PlannedCall> Engine::planned_calls(const Workflow& flow, Inputs inputs) const {
  return translate_errors([&] {
    const Ready ready = data_->prepare_to_show(flow.data_, std::move(inputs));
    std::vector<PlannedCall> calls;
    for (const engine::NodeIndex n : ready.graph.order)
      for (const engine::PlacedCall& call : ready.plan.assignments[n].calls)
        calls.push_back({ready.graph.nodes[n].id, call.report.model,
                         std::string(engine::parallel_name(call.placement.parallel)), call.seconds,
                         call.step_seconds, call.load_seconds,
                         call.report.step_count > 0 ? call.report.step_flops : 0});
    return calls;
  });
}

std::string Engine::plan_dot(const Workflow& flow, Inputs inputs) const {
  return translate_errors([&] {
    const Ready ready = data_->prepare_to_show(flow.data_, std::move(inputs));
    return engine::plan_dot(ready.graph, ready.plan, data_->environment->topology);
  });
}

std::string Engine::plan_json(const Workflow& flow, Inputs inputs) const {
  return translate_errors([&] {
    const Ready ready = data_->prepare_to_show(flow.data_, std::move(inputs));
    Json plan = engine::plan_json(ready.graph, ready.plan, data_->environment->topology);
    Json models = Json::array();
    for (const engine::ModelSummary& model : ready.described.models)
      models.push(std::move(Json::object()
                                .set("output", output_name(ready.graph, model))
                                .set("family", model.family)
                                .set("blocks", model.blocks)
                                .set("weight_bytes", model.weight_bytes)));
    plan.set("models", std::move(models));
    return engine::write_json(plan, 2);
  });
}

}  // namespace heddle
