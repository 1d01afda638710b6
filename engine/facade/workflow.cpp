#include <algorithm>

#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/facade/data.h"
#include "engine/facade/inputs.h"
#include "engine/facade/saved_workflow.h"
#include "engine/graph/parallel_names.h"
#include "engine/graph/run_targets.h"

namespace heddle {

namespace {

std::shared_ptr<Workflow::Data> copy_of(const std::shared_ptr<const Workflow::Data>& data) {
  if (data == nullptr)
    throw engine::Error(engine::Code::invalid_argument,
                        "this workflow is empty: make it with Engine::load or Engine::parse");
  require_converted(*data);
  return std::make_shared<Workflow::Data>(*data);
}

template <class F>
std::shared_ptr<Workflow::Data> with_hints(const std::shared_ptr<const Workflow::Data>& data,
                                           std::string_view node, F&& change) {
  auto changed = copy_of(data);
  change(changed->workflow.nodes[engine::find_node(changed->workflow, node)].hints);
  return changed;
}

// translate_errors(), with who said it in front of what is wrong with it.
template <class F>
void said_by(std::string_view from, F&& change) {
  translate_errors([&] { engine::framed(from, change); });
}

}  // namespace

Workflow Workflow::parse(std::string_view json, std::string_view name) {
  return translate_errors([&] {
    Workflow flow;
    flow.data_ = read_workflow(json, name, nullptr);
    return flow;
  });
}

Workflow Workflow::load(const std::filesystem::path& path) {
  return translate_errors([&] {
    Workflow flow;
    flow.data_ = load_workflow(path, nullptr);
    return flow;
  });
}

std::optional<Workflow::Node> Workflow::find(std::string_view name) const {
  if (data_ == nullptr) return std::nullopt;
  try {
    const engine::WorkflowNode& node =
        data_->workflow.nodes[engine::find_node(data_->workflow, name)];
    Node described{node.id, node.title,        node.class_type,
                   {},      node.hints.device, node.hints.parallel};
    for (const engine::WorkflowInput& input : node.inputs) described.inputs.push_back(input.name);
    return described;
  } catch (const engine::Error&) {
    return std::nullopt;
  }
}

std::map<std::string, std::uint64_t> Workflow::budgets() const {
  std::map<std::string, std::uint64_t> budgets;
  if (data_ != nullptr)
    for (const engine::DeviceHint& hint : data_->workflow.devices)
      if (hint.budget_bytes) budgets[hint.device] = *hint.budget_bytes;
  return budgets;
}

void Workflow::set(std::string_view input, std::string_view value, std::string_view from) {
  said_by(from, [&] {
    auto changed = copy_of(data_);
    const std::size_t dot = input_dot(changed->workflow, input);
    if (dot == std::string_view::npos)
      throw engine::Error(
          engine::Code::invalid_argument,
          engine::cat(engine::quote(input), " does not name an input: say NODE.INPUT"));
    const std::size_t node = engine::find_node(changed->workflow, input.substr(0, dot));
    const std::string_view name = input.substr(dot + 1);
    const engine::WorkflowNode& target = changed->workflow.nodes[node];
    std::string type;
    if (const engine::NodeTypeRef known =
            changed->catalog == nullptr ? nullptr : changed->catalog->find(target.class_type)) {
      if (const auto port = known->find_input(name))
        type = known->input(*port).type;
      else if (!known->has(HEDDLE_NODE_ANY_INPUT)) {
        std::vector<std::string_view> names;
        for (std::uint32_t i = 0; i < known->input_count(); ++i)
          names.push_back(known->input(i).name);
        throw engine::Error(engine::Code::invalid_argument,
                            engine::cat("node ", engine::quote(target.id), " (", target.class_type,
                                        ") has no input ", engine::quote(name), ".",
                                        engine::did_you_mean(name, names), " It has ",
                                        engine::join(names, ", "), "."));
      }
    }
    engine::set_input(changed->workflow, node, name, value, type);
    std::ranges::find(changed->workflow.nodes[node].inputs, name, &engine::WorkflowInput::name)
        ->from = from;
    data_ = std::move(changed);
  });
}

void Workflow::place(std::string_view node, std::string_view device, std::string_view from) {
  said_by(from, [&] {
    data_ = with_hints(data_, node, [&](engine::Hints& hints) {
      hints.device = device;
      hints.device_from = from;
    });
  });
}

void Workflow::parallel(std::string_view node, std::string_view mode, std::string_view from) {
  said_by(from, [&] {
    data_ = with_hints(data_, node, [&](engine::Hints& hints) {
      hints.parallel = engine::canonical_parallel(mode).value_or(std::string(mode));
      hints.parallel_from = from;
    });
  });
}

void Workflow::only(const std::vector<std::string>& nodes, std::string_view from) {
  said_by(from, [&] {
    auto changed = copy_of(data_);
    engine::Workflow& workflow = changed->workflow;
    std::vector<std::string> ids;
    for (const std::string& node : nodes)
      ids.push_back(workflow.nodes[engine::find_node(workflow, node)].id);
    engine::set_targets(workflow, ids);
    data_ = std::move(changed);
  });
}

std::string Workflow::text() const {
  return translate_errors([&] {
    if (data_ != nullptr && data_->saved != nullptr) return engine::write_json(*data_->saved);
    return engine::write_workflow(copy_of(data_)->workflow);
  });
}

}  // namespace heddle
