#include "engine/cli/variants.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Code;
using engine::Error;

// Of several options for one input the last counts: its range, too, and not a product of both.
struct Assignment {
  std::string node, input;  // the node's id when it is known
  std::string name;         // NODE.INPUT as it was written
  std::vector<std::string> values;
  std::string where;  // it was given
};

void assign(std::vector<Assignment>& all, Assignment fresh) {
  std::erase_if(all, [&](const Assignment& old) {
    return old.node == fresh.node && old.input == fresh.input;
  });
  all.push_back(std::move(fresh));
}

Assignment read_assignment(const Engine& engine, const std::optional<Workflow::Node>& node,
                           const InputName& name, const Pair& set) {
  const InputKind kind =
      kind_of_type(node ? engine.input_type(node->class_type, name.input) : std::string());
  try {
    return {node ? node->id : name.node, name.input, set.key, values_of(set.value, kind),
            set.where};
  } catch (const Error& error) {
    throw Error(error.code(), cat(set.where, " ", set.key, ": ", error.what()));
  }
}

}  // namespace

InputName split_input_name(std::string_view name) {
  const std::size_t point = name.rfind('.');
  if (point == std::string_view::npos || point == 0 || point + 1 == name.size())
    throw Error(Code::invalid_argument,
                cat("expected NODE.INPUT=VALUE, got no NODE.INPUT in ", engine::quote(name), "."));
  return {std::string(name.substr(0, point)), std::string(name.substr(point + 1))};
}

InputName split_input_name(std::string_view name, const Workflow& flow) {
  for (std::size_t point = name.rfind('.'); point != name.npos && point > 0;
       point = name.rfind('.', point - 1))
    if (point + 1 < name.size() && flow.find(name.substr(0, point)))
      return {std::string(name.substr(0, point)), std::string(name.substr(point + 1))};
  return split_input_name(name);
}

Variants::Variants(const Engine& engine, Workflow flow, const Settings& settings,
                   const std::function<void(const std::string&)>& warn)
    : flow_(std::move(flow)) {
  const Workflow given = flow_;  // what it says itself, whatever options change
  // A configuration file stands below the workflow, and serves workflows of all sorts.
  const auto passes_over = [&](const Pair& pair, bool is_there, bool is_given) {
    if (pair.origin != Origin::configuration) return false;
    if (!is_there)
      warn(cat(pair.where, ": this workflow has no node for ", engine::quote(pair.key), "."));
    return !is_there || is_given;
  };
  std::vector<std::string> only;
  for (const Given& name : settings.only)
    if (!passes_over({name.text, "", name.origin, name.where}, given.find(name.text).has_value(),
                     false))
      only.push_back(name.text);
  if (!only.empty()) flow_.only(only, settings.only.front().where);
  for (const Pair& place : settings.places) {
    const std::optional<Workflow::Node> node = given.find(place.key);
    if (!passes_over(place, node.has_value(), node && !node->device.empty()))
      flow_.place(place.key, place.value, place.where);
  }
  for (const Pair& mode : settings.parallel) {
    const std::optional<Workflow::Node> node = given.find(mode.key);
    if (!passes_over(mode, node.has_value(), node && !node->parallel.empty()))
      flow_.parallel(mode.key, mode.value, mode.where);
  }
  std::vector<Assignment> assignments;
  for (const Pair& set : settings.sets) {
    const InputName name = split_input_name(set.key, given);
    const std::optional<Workflow::Node> node = given.find(name.node);
    if (!passes_over(set, node.has_value(),
                     node && std::ranges::find(node->inputs, name.input) != node->inputs.end()))
      assign(assignments, read_assignment(engine, node, name, set));
  }
  for (Assignment& assignment : assignments) {
    flow_.set(assignment.name, assignment.values.front(), assignment.where);
    if (assignment.values.size() == 1) continue;
    sweep_.add(std::move(assignment.values));
    inputs_.push_back({assignment.name, assignment.where});
  }
}

Workflow Variants::workflow(std::size_t run) const {
  Workflow flow = flow_;
  const std::vector<std::string> values = sweep_.values(run);
  for (std::size_t i = 0; i < values.size(); ++i)
    flow.set(inputs_[i].name, values[i], inputs_[i].where);
  return flow;
}

std::string Variants::label(std::size_t run) const {
  const std::vector<std::string> values = sweep_.values(run);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < values.size(); ++i)
    parts.push_back(cat(inputs_[i].name, "=", values[i]));
  return engine::join(parts, ", ");
}

}  // namespace heddle::cli
