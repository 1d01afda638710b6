#include "engine/graph/workflow.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/graph/type_match.h"

namespace heddle::engine {
namespace {

Json input_to_json(const WorkflowInput& input) {
  if (const Link* link = std::get_if<Link>(&input.value)) {
    Json array = Json::array();
    array.push(link->node);
    std::visit([&](const auto& output) { array.push(output); }, link->output);
    return array;
  }
  const Json& literal = std::get<Json>(input.value);
  if (input.is_bad_link) return literal;
  if (!literal.is_array() && literal.find("__value__") == nullptr) return literal;
  return std::move(Json::object().set("__value__", literal));
}

Json blocks_to_json(const std::vector<BlockHint>& blocks) {
  Json array = Json::array();
  for (const BlockHint& hint : blocks)
    array.push(std::move(Json::object().set("match", hint.match).set("device", hint.device)));
  return array;
}

enum class Keep { all, foreign };

Json node_to_json(const WorkflowNode& node, Keep keep) {
  Json inputs = Json::object();
  for (const WorkflowInput& input : node.inputs) inputs.set(input.name, input_to_json(input));
  Json json = Json::object();
  json.set("class_type", node.class_type).set("inputs", std::move(inputs));
  if (keep == Keep::all) {
    const Hints& hints = node.hints;
    if (!hints.device.empty()) json.set("device", hints.device);
    if (!hints.prefer.empty()) json.set("prefer", hints.prefer);
    if (!hints.parallel.empty()) json.set("parallel", hints.parallel);
    if (!hints.blocks.empty()) json.set("blocks", blocks_to_json(hints.blocks));
  }
  if (node.rest.is_object())
    for (const Json::Member& member : node.rest.members()) json.set(member.key, member.value);
  return json;
}

Json all_nodes(const Workflow& workflow, Keep keep) {
  Json nodes = Json::object();
  for (const WorkflowNode& node : workflow.nodes) nodes.set(node.id, node_to_json(node, keep));
  return nodes;
}

// "'4' (ImageScale)".
std::string with_class(const WorkflowNode& node) {
  return cat(quote(node.id), " (", node.class_type, ")");
}

enum class Shape { text, number, boolean, any };

bool has_shape(const Json& json, Shape shape) {
  switch (shape) {
    case Shape::text:
      return json.is_string();
    case Shape::number:
      return json.is_number();
    case Shape::boolean:
      return json.is_bool();
    case Shape::any:
      return true;
  }
  return false;
}

std::vector<Shape> shapes_of(std::string_view declared_type, const WorkflowInput* present) {
  std::vector<Shape> shapes;
  if (declared_type.empty()) {
    const Json* literal = present == nullptr ? nullptr : std::get_if<Json>(&present->value);
    if (literal == nullptr) return {Shape::any};
    return {literal->is_string()   ? Shape::text
            : literal->is_number() ? Shape::number
            : literal->is_bool()   ? Shape::boolean
                                   : Shape::any};
  }
  if (declared_type == "*") return {Shape::any};
  if (types_match(declared_type, "INT") || types_match(declared_type, "FLOAT"))
    shapes.push_back(Shape::number);
  if (types_match(declared_type, "BOOLEAN")) shapes.push_back(Shape::boolean);
  if (types_match(declared_type, "STRING") || types_match(declared_type, "COMBO"))
    shapes.push_back(Shape::text);
  return shapes.empty() ? std::vector{Shape::any} : shapes;
}

std::optional<Json> try_parse(std::string_view text) {
  try {
    return parse_json(text, "");
  } catch (const Error&) {
    return std::nullopt;  // not JSON, so it is meant as text
  }
}

std::variant<Json, Link> meant(std::string_view value, const std::vector<Shape>& shapes) {
  std::optional<Json> json = try_parse(value);
  if (!json) return Json(value);
  const bool text_only = shapes == std::vector{Shape::text};
  if (std::optional<Link> link = link_of(*json); link && !text_only) return std::move(*link);
  const Json* wrapped = json->find("__value__");
  for (const Shape shape : shapes)
    if (has_shape(*json, shape)) return wrapped == nullptr ? std::move(*json) : Json(*wrapped);
  return Json(value);
}

}  // namespace

std::optional<Link> link_of(const Json& json) {
  if (!json.is_array() || json.size() != 2) return std::nullopt;
  const Json &node = json.at(std::size_t{0}), &output = json.at(std::size_t{1});
  if (!node.is_string() && !node.is_integer()) return std::nullopt;
  Link link{node.is_string() ? node.as_string() : write_json(node), 0u};
  if (output.is_string()) {
    link.output = output.as_string();
    return link;
  }
  if (!output.is_number()) return std::nullopt;
  const double number = output.as_double();
  if (!(number >= 0 && number < 4294967296.0)) return std::nullopt;
  const auto slot = static_cast<std::uint32_t>(number);
  if (static_cast<double>(slot) != number) return std::nullopt;
  link.output = slot;
  return link;
}

const WorkflowNode* Workflow::find(std::string_view id) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const WorkflowNode& node) { return node.id == id; });
  return found == nodes.end() ? nullptr : &*found;
}

Json nodes_to_json(const Workflow& workflow) { return all_nodes(workflow, Keep::foreign); }

std::string write_workflow(const Workflow& workflow) {
  Json nodes = all_nodes(workflow, Keep::all);
  const bool bare = workflow.devices.empty() && workflow.rest.size() == 0;
  // A node called "prompt" or "devices" at the top is read as a node because it has a class.
  if (bare) return write_json(nodes);
  Json json = Json::object();
  if (!workflow.devices.empty()) {
    Json devices = Json::object();
    for (const DeviceHint& hint : workflow.devices) {
      Json device = Json::object();
      if (hint.budget_bytes) device.set("budget", *hint.budget_bytes);
      devices.set(hint.device, std::move(device));
    }
    json.set("devices", std::move(devices));
  }
  json.set("prompt", std::move(nodes));
  for (const Json::Member& member : workflow.rest.members()) json.set(member.key, member.value);
  return write_json(json);
}

std::size_t find_node(const Workflow& workflow, std::string_view name) {
  const auto matches = [&](auto member) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < workflow.nodes.size(); ++i)
      if (workflow.nodes[i].*member == name) found.push_back(i);
    return found;
  };
  for (const auto member : {&WorkflowNode::id, &WorkflowNode::title, &WorkflowNode::class_type}) {
    if (name.empty()) break;
    const std::vector<std::size_t> found = matches(member);
    if (found.size() == 1) return found.front();
    if (found.empty()) continue;
    std::vector<std::string> candidates;
    for (const std::size_t i : found) candidates.push_back(with_class(workflow.nodes[i]));
    throw Error(Code::invalid_argument,
                cat(workflow.name, ": ", quote(name), " may be any of ", found.size(),
                    " nodes: ", clip(join(candidates, ", "), 400), ". Name one by its id."));
  }
  std::vector<std::string_view> names;
  for (const WorkflowNode& node : workflow.nodes)
    for (const std::string* text : {&node.id, &node.title, &node.class_type})
      if (!text->empty()) names.push_back(*text);
  throw Error(Code::not_found,
              cat(workflow.name, ": there is no node ", quote(name), ".", did_you_mean(name, names),
                  " Name a node by its id, its title, or its class where only one node has it."));
}

void set_input(Workflow& workflow, std::size_t node, std::string_view input, std::string_view value,
               std::string_view declared_type) {
  std::vector<WorkflowInput>& inputs = workflow.nodes.at(node).inputs;
  const auto found = std::find_if(inputs.begin(), inputs.end(),
                                  [&](const WorkflowInput& there) { return there.name == input; });
  WorkflowInput* present = found == inputs.end() ? nullptr : &*found;
  WorkflowInput changed{std::string(input), meant(value, shapes_of(declared_type, present)), 0, 0};
  if (present != nullptr) {
    *present = std::move(changed);
  } else {
    inputs.push_back(std::move(changed));
  }
}

}  // namespace heddle::engine
