// The plan of a workflow, as text and as JSON.
#include "engine/base/text.h"
#include "engine/facade/data.h"
#include "engine/facade/inputs.h"
#include "engine/plan/plan_dot.h"
#include "engine/plan/plan_text.h"

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

Engine::Data::Ready Engine::Data::prepare_to_show(const std::shared_ptr<const Workflow::Data>& flow, Inputs inputs) const {
  const TakenInputs taken = take_inputs(std::move(inputs));
  const std::shared_ptr<const Workflow::Data> given = with_inputs(flow, taken);
  return prepare(*given, {Describe::strictly, {}, values_of(*given, taken)});
}

std::string Engine::plan(const Workflow& flow, Inputs inputs) const {
  return outward([&] {
    const Data::Ready ready = data_->prepare_to_show(flow.data_, std::move(inputs));
    std::string text = core::plan_text(ready.graph, ready.plan, data_->environment->topology);
    for (const core::ModelSummary& model : ready.described.models)
      text += cat("model ", output_name(ready.graph, model), ": ", model.family, ", ", model.blocks,
                  " blocks, ", core::format_bytes(model.weight_bytes), " of weights\n");
    return text;
  });
}

std::string Engine::plan_dot(const Workflow& flow, Inputs inputs) const {
  return outward([&] {
    const Data::Ready ready = data_->prepare_to_show(flow.data_, std::move(inputs));
    return core::plan_dot(ready.graph, ready.plan, data_->environment->topology);
  });
}

std::string Engine::plan_json(const Workflow& flow, Inputs inputs) const {
  return outward([&] {
    const Data::Ready ready = data_->prepare_to_show(flow.data_, std::move(inputs));
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
