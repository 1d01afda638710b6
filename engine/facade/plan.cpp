// The plan of a workflow, as text and as JSON.
#include <map>

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

// The least budget of one memory, by node: as text and as an element of the JSON. With less than
// the first figure a node works in tiles where it can, as far as the second.
class LeastMemory {
 public:
  LeastMemory(std::string_view memory, const engine::Graph& graph)
      : memory_(memory), graph_(graph) {}

  // `needs`: a MemoryRequirement or a HostRequirement. `streaming`: what else the text says.
  template <class Needs>
  void add(const Needs& need, const std::string& streaming, const std::string& reason,
           Json fields) {
    const std::string& node = graph_.nodes[need.node].id;
    whole_.raise(need.min_bytes, node);
    tiled_.raise(need.tiled_bytes, node);
    const bool tiles = need.tiled_bytes < need.min_bytes;
    lines_ += cat("  ", engine::printable(node), ": ", engine::format_bytes(need.min_bytes),
                  tiles ? cat(", in tiles ", engine::format_bytes(need.tiled_bytes)) : "",
                  streaming, "; ", engine::printable(reason), "\n");
    fields.set("node", node).set("min_bytes", need.min_bytes).set("reason", reason);
    if (tiles) fields.set("tiled_min_bytes", need.tiled_bytes);
    nodes_.push(std::move(fields));
  }
  void report(std::string& text, Json& devices) {
    Json device = Json::object();
    device.set("device", std::string(memory_)).set("min_bytes", whole_.bytes);
    text += cat(memory_, ": at least ", whole_.text(), "\n");
    if (tiled_.bytes < whole_.bytes) {
      device.set("tiled_min_bytes", tiled_.bytes);
      text += cat("  in tiles, which changes the result a little: at least ", tiled_.text(), "\n");
    }
    text += lines_;
    devices.push(std::move(device.set("nodes", std::move(nodes_))));
  }

 private:
  struct Most {
    std::uint64_t bytes = 0;
    std::string node;  // that decides
    void raise(std::uint64_t other, const std::string& of) {
      if (other <= bytes) return;
      bytes = other;
      node = of;
    }
    std::string text() const {
      return cat(engine::format_bytes(bytes), " (", bytes, " bytes), by node ",
                 engine::printable(node));
    }
  };
  std::string_view memory_;
  const engine::Graph& graph_;
  Most whole_, tiled_;
  std::string lines_;
  Json nodes_ = Json::array();
};

// What the host's budget has to be at least, by node, behind the devices'.
void report_host_memory(const std::vector<engine::HostRequirement>& needs,
                        const engine::Graph& graph, std::string& text, Json& devices) {
  if (needs.empty()) return;
  LeastMemory host("host", graph);
  for (const engine::HostRequirement& need : needs)
    host.add(need, "",
             need.values_bytes > 0
                 ? cat(engine::format_bytes(need.values_bytes), " for the node's values")
                 : cat(engine::format_bytes(need.reading_bytes), " for reading weights"),
             Json::object());
  host.report(text, devices);
}

}  // namespace

std::string Engine::plan_min_memory(const Workflow& flow, bool as_json) const {
  return translate_errors([&] {
    const Ready ready = data_->prepare_to_show(flow.data_, {}, false);
    const engine::Topology& topology = data_->environment->topology;
    const engine::MemoryRequirements all = engine::memory_requirements(
        ready.graph, ready.plan, ready.inferred, topology, *data_->environment);
    std::map<std::uint32_t, LeastMemory> by_device;
    for (const engine::MemoryRequirement& need : all.needs)
      by_device.try_emplace(need.device, topology.devices[need.device].name, ready.graph)
          .first->second.add(
              need,
              need.all_bytes > need.min_bytes
                  ? cat(", nothing streamed with ", engine::format_bytes(need.all_bytes))
                  : "",
              need.reason,
              std::move(Json::object()
                            .set("all_bytes", need.all_bytes)
                            .set("values_bytes", need.values_bytes)));
    std::string text;
    Json devices = Json::array();
    for (auto& [d, least] : by_device) least.report(text, devices);
    report_host_memory(engine::host_requirements(ready.graph, ready.plan, ready.inferred, all.needs,
                                                 *data_->environment),
                       ready.graph, text, devices);
    if (by_device.empty()) text += "no node is known to need memory of a device\n";
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
