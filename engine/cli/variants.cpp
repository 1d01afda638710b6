#include "engine/cli/variants.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/cli/flow_view.h"

namespace heddle::cli {
namespace {

using core::cat;
using core::Code;
using core::Error;
using core::Json;

// The declaration of the node's class; null for a class that the engine does not have, which
// check() reports with the nearest names.
Json info_of(const Engine& engine, const std::string& class_type) {
  try {
    return core::parse_json(engine.object_info(class_type), class_type);
  } catch (const EngineError&) {
    return {};
  }
}

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

Assignment read_assignment(const Engine& engine, const FlowView::Node* node, const InputName& name,
                           const Pair& set) {
  const Json info = node == nullptr ? Json() : info_of(engine, node->class_type);
  const InputKind kind = declared_kind(info, name.input).value_or(InputKind::other);
  try {
    return {node == nullptr ? name.node : node->id, name.input, set.key, values_of(set.value, kind),
            set.where};
  } catch (const Error& error) {
    throw Error(error.code(), cat(set.where, " ", set.key, ": ", error.what()));
  }
}

}  // namespace

Variants::Variants(const Engine& engine, Workflow flow, const Settings& settings,
                   const std::function<void(const std::string&)>& warn)
    : flow_(std::move(flow)) {
  const FlowView view(flow_.text());
  // A configuration file stands below the workflow, and serves workflows of all sorts.
  const auto passes_over = [&](const Pair& pair, const FlowView::Node* node, bool given) {
    if (pair.origin != Origin::configuration) return false;
    if (node == nullptr)
      warn(cat(pair.where, ": this workflow has no node for ", core::quote(pair.key), "."));
    return node == nullptr || given;
  };
  for (const Pair& place : settings.places) {
    const FlowView::Node* node = view.find(place.key);
    if (!passes_over(place, node, node != nullptr && node->gives("device")))
      flow_.place(place.key, place.value, place.where);
  }
  for (const Pair& mode : settings.parallel) {
    const FlowView::Node* node = view.find(mode.key);
    if (!passes_over(mode, node, node != nullptr && node->gives("parallel")))
      flow_.parallel(mode.key, mode.value, mode.where);
  }
  std::vector<Assignment> assignments;
  for (const Pair& set : settings.sets) {
    const InputName name = split_input_name(set.key);
    const FlowView::Node* node = view.find(name.node);
    if (!passes_over(set, node, node != nullptr && node->gives_input(name.input)))
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
  return core::join(parts, ", ");
}

}  // namespace heddle::cli
