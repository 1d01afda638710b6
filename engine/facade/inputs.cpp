#include "engine/facade/inputs.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"
#include "engine/facade/data.h"
#include "engine/graph/literal.h"
#include "engine/graph/type_match.h"

namespace heddle {

namespace {

using engine::cat;
using engine::quote;

engine::ManagedTensor owned(DLManagedTensor* tensor) {
  return tensor == nullptr ? nullptr : engine::take_managed(tensor);
}

// One input of one node of a workflow.
struct Target {
  std::size_t node;
  std::string input;
  const heddle_port*
      port;  // nullptr: the class has no such port and takes anything, or is not known
};

Target find_target(const Workflow::Data& flow, const std::string& name) {
  const std::size_t dot = input_dot(flow.workflow, name);
  if (dot == std::string::npos)
    throw engine::Error(engine::Code::invalid_argument,
                        cat(quote(name), " does not name an input: say NODE.INPUT"));
  Target target{engine::find_node(flow.workflow, std::string_view(name).substr(0, dot)),
                name.substr(dot + 1), nullptr};
  const engine::WorkflowNode& node = flow.workflow.nodes[target.node];
  const engine::NodeTypeRef type =
      flow.catalog == nullptr ? nullptr : flow.catalog->find(node.class_type);
  if (type == nullptr) return target;  // bind() says more about it
  if (const auto port = type->find_input(target.input);
      port && (type->input(*port).flags & HEDDLE_PORT_HIDDEN) == 0) {
    target.port = &type->input(*port);
    return target;
  }
  if (type->has(HEDDLE_NODE_ANY_INPUT)) return target;
  std::vector<std::string_view> names;
  for (std::uint32_t i = 0; i < type->input_count(); ++i)
    if ((type->input(i).flags & HEDDLE_PORT_HIDDEN) == 0) names.push_back(type->input(i).name);
  throw engine::Error(engine::Code::invalid_argument,
                      cat("node ", quote(node.id), " (", node.class_type, ") has no input ",
                          quote(target.input), ".", engine::did_you_mean(target.input, names),
                          " It has ", engine::join(names, ", "), "."));
}

bool takes_nonfinite(const Target& target) {
  return target.port != nullptr && (target.port->flags & HEDDLE_PORT_NONFINITE) != 0;
}

// The text that files carry says that a tensor was given there: it cannot say which. The link, if
// there is one, stays, so that whoever loads the text has a workflow that can run.
void mark_given(engine::WorkflowNode& node, const std::string& input) {
  if (node.rest.is_null()) node.rest = engine::Json::object();
  const engine::Json* old = node.rest.find("_meta");
  engine::Json meta = old != nullptr && old->is_object() ? *old : engine::Json::object();
  engine::Json given = engine::Json::array();
  if (const engine::Json* before = meta.find("given"); before != nullptr && before->is_array())
    given = *before;
  given.push(input);
  meta.set("given", std::move(given));
  node.rest.set("_meta", std::move(meta));
}

engine::Value tensor_value(const TakenTensor& taken) {
  const auto value = [](const engine::ManagedTensor& tensor) {
    if (tensor == nullptr)
      throw engine::Error(engine::Code::invalid_argument, "the DLPack tensor is a null pointer");
    return engine::make_value(engine::from_dlpack(tensor));
  };
  if (taken.fields.empty()) return value(taken.bare);
  std::vector<std::pair<std::string, engine::Value>> fields;
  for (const auto& [name, tensor] : taken.fields) {
    try {
      fields.emplace_back(name, value(tensor));
    } catch (engine::Error& error) {
      throw error.at(cat("field ", quote(name)));
    }
  }
  return engine::make_record(std::move(fields));
}

}  // namespace

std::size_t input_dot(const engine::Workflow& workflow, std::string_view name) {
  const auto is_there = [&](std::string_view node) {
    return std::ranges::any_of(workflow.nodes, [&](const engine::WorkflowNode& one) {
      return one.id == node || one.title == node || one.class_type == node;
    });
  };
  const std::size_t last = name.rfind('.');
  for (std::size_t dot = last; dot != name.npos && dot > 0; dot = name.rfind('.', dot - 1))
    if (is_there(name.substr(0, dot))) return dot;
  return last;
}

TakenInputs take_inputs(Inputs inputs) {
  TakenInputs taken;
  for (auto& [name, input] : inputs) {
    if (auto* const* tensor = std::get_if<DLManagedTensor*>(&input)) {
      taken[name] = TakenTensor{owned(*tensor), {}};
    } else if (const auto* record = std::get_if<std::map<std::string, DLManagedTensor*>>(&input)) {
      TakenTensor all;
      for (const auto& [field, tensor] : *record) all.fields[field] = owned(tensor);
      taken[name] = std::move(all);
    } else if (const auto* flag = std::get_if<bool>(&input)) {
      taken[name] = engine::Json(*flag);
    } else if (const auto* integer = std::get_if<std::int64_t>(&input)) {
      taken[name] = engine::Json(*integer);
    } else if (const auto* number = std::get_if<double>(&input)) {
      taken[name] = engine::Json(*number);
    } else {
      taken[name] = engine::Json(std::get<std::string>(std::move(input)));
    }
  }
  return taken;
}

std::shared_ptr<const Workflow::Data> with_inputs(const std::shared_ptr<const Workflow::Data>& flow,
                                                  const TakenInputs& inputs) {
  if (flow == nullptr)
    throw engine::Error(engine::Code::invalid_argument,
                        "this workflow is empty: make it with Engine::load or Engine::parse");
  if (inputs.empty()) return flow;
  auto changed = std::make_shared<Workflow::Data>(*flow);
  for (const auto& [name, input] : inputs) {
    const auto* literal = std::get_if<engine::Json>(&input);
    const Target target = find_target(*flow, name);
    if (literal != nullptr && literal->kind() == engine::Json::Kind::real &&
        !std::isfinite(literal->as_double()) && !takes_nonfinite(target))
      throw engine::Error(engine::Code::invalid_argument,
                          cat("the value given to ", quote(name), " is not a finite number"));
    engine::WorkflowNode& node = changed->workflow.nodes[target.node];
    if (literal == nullptr) {
      mark_given(node, target.input);
      continue;
    }
    std::vector<engine::WorkflowInput>& there = node.inputs;
    const auto same = std::ranges::find(there, target.input, &engine::WorkflowInput::name);
    if (same != there.end())
      same->value = *literal;
    else
      there.push_back({target.input, *literal});
  }
  return changed;
}

engine::GivenValues values_of(const Workflow::Data& flow, const TakenInputs& inputs) {
  engine::GivenValues values;
  for (const auto& [name, input] : inputs) {
    const auto* taken = std::get_if<TakenTensor>(&input);
    if (taken == nullptr) continue;
    const Target target = find_target(flow, name);
    const engine::WorkflowNode& node = flow.workflow.nodes[target.node];
    try {
      engine::Value value = tensor_value(*taken);
      if (target.port != nullptr && engine::takes_literals(*target.port) &&
          !engine::types_match("TENSOR", target.port->type))
        throw engine::Error(engine::Code::invalid_argument,
                            cat("expects ", target.port->type, ", got ", engine::describe(*value)));
      values[{node.id, target.input}] = std::move(value);
    } catch (engine::Error& error) {
      throw error.at(cat("input ", quote(target.input)))
          .at(cat("node ", quote(node.id), " (", node.class_type, ")"));
    }
  }
  return values;
}

std::vector<engine::Source> find_outputs(const engine::Graph& graph,
                                         const engine::Workflow& workflow,
                                         const std::vector<std::string>& names) {
  std::vector<engine::Source> sources;
  for (const std::string& name : names) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos)
      throw engine::Error(
          engine::Code::invalid_argument,
          engine::cat(engine::quote(name), " does not name an output: say NODE.OUTPUT"));
    const std::string id =
        workflow.nodes[engine::find_node(workflow, std::string_view(name).substr(0, dot))].id;
    const auto node =
        std::ranges::find_if(graph.nodes, [&](const engine::Node& n) { return n.id == id; });
    const auto index = engine::NodeIndex(node - graph.nodes.begin());
    if (node == graph.nodes.end() || std::ranges::find(graph.order, index) == graph.order.end())
      throw engine::Error(engine::Code::not_found,
                          engine::cat("no sink needs the node of ", engine::quote(name)));
    const auto port = node->type->find_output(name.substr(dot + 1));
    if (!port)
      throw engine::Error(engine::Code::not_found,
                          engine::cat("node ", engine::quote(id), " has no output ",
                                      engine::quote(name.substr(dot + 1))));
    sources.push_back({index, *port});
  }
  return sources;
}

}  // namespace heddle
