#include "engine/program/infer.h"

#include <algorithm>
#include <charconv>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/device/device.h"
#include "engine/graph/lists.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

Value child_of(const heddle_value& value, std::string_view name) {
  if (const auto* record = std::get_if<Record>(&value.content)) {
    const Value* field = record->find(name);
    return field == nullptr ? Value() : *field;
  }
  const auto* list = std::get_if<List>(&value.content);
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool is_index = list != nullptr && error == std::errc() && end == name.data() + name.size();
  return is_index && index < list->items.size() ? list->items[index] : Value();
}

}  // namespace

Value part_of(const Value& value, std::string_view path) {
  Value at = value;
  while (at && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    at = child_of(*at, path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return at;
}

Value part_of(const ValueSpec& spec, std::string_view path) {
  if (spec.value) return part_of(spec.value, path);
  for (const auto& [known, value] : spec.parts) {
    if (path == known) return value;
    if (path.size() > known.size() && path.starts_with(known) && path[known.size()] == '.')
      return part_of(value, path.substr(known.size() + 1));
  }
  return {};
}

namespace {

void add_tensors(const heddle_value& value, const std::string& path, ValueSpec& spec) {
  const auto below = [&](const std::string& name) {
    return path.empty() ? name : path + '.' + name;
  };
  if (const auto* tensor = std::get_if<Tensor>(&value.content)) {
    spec.tensors.emplace(path, (*tensor)->info);
  } else if (const auto* list = std::get_if<List>(&value.content)) {
    for (std::size_t i = 0; i < list->items.size(); ++i)
      add_tensors(*list->items[i], below(std::to_string(i)), spec);
  } else if (const auto* record = std::get_if<Record>(&value.content)) {
    for (const auto& [name, field] : record->fields) add_tensors(*field, below(name), spec);
  }
}

// Values that are known before the run are refused before it.
void check_known(const heddle_infer& question) {
  const NodeType& type = *question.node.type;
  for (std::uint32_t i = 0; i < type.input_count(); ++i) {
    if (!type.check(i).is_needed() || (type.input(i).flags & HEDDLE_PORT_LAZY) != 0) continue;
    const ValueSpec* spec = linked_spec(question.node, i, question.known);
    if (const Value known = spec == nullptr ? Value() : part_of(*spec, ""))
      type.check(i).check(*known, question.catalog);
  }
}

// Outputs that are there already: nothing is asked of the node, whose inputs may be gone.
bool are_cached_on_disk(const Node& node, const std::vector<ValueSpec>& outputs) {
  return node.type->has(HEDDLE_NODE_CACHE_ON_DISK) &&
         std::ranges::all_of(outputs, [](const ValueSpec& spec) { return bool(spec.value); });
}

}  // namespace

NodeBytes bytes_of(const NodeSpec& node) {
  NodeBytes bytes{0, node.scratch_bytes};
  for (const ValueSpec& output : node.outputs)
    if (!output.is_shared && !output.value)
      for (const auto& [path, info] : output.tensors) bytes.made += dense_bytes(info);
  return bytes;
}

NodeBytes host_bytes_of(const NodeSpec& node, bool is_placed_on_host) {
  NodeBytes bytes = is_placed_on_host ? bytes_of(node) : NodeBytes();
  bytes.scratch += node.host_scratch_bytes;
  return bytes;
}

const ValueSpec* linked_spec(const Node& node, std::uint32_t input,
                             const std::vector<NodeSpec>& known) {
  if (input >= node.inputs.size()) return nullptr;
  const auto* link = std::get_if<Source>(&node.inputs[input]);
  const bool is_there =
      link != nullptr && link->node < known.size() && link->port < known[link->node].outputs.size();
  return is_there ? &known[link->node].outputs[link->port] : nullptr;
}

Inferred infer(const Graph& graph, const heddle_host* host, const Facts& facts,
               const Catalog* catalog) {
  Inferred result;
  result.nodes.resize(graph.nodes.size());
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    heddle_infer question{graph, node, result.nodes, {}, catalog};
    question.answer.outputs.resize(node.type->output_count());
    for (std::uint32_t o = 0; o < node.type->output_count(); ++o)
      if (const auto fact = facts.find({n, o}); fact != facts.end())
        question.answer.outputs[o].value = fact->second;
    if (!has_lists(node) && !are_cached_on_disk(node, question.answer.outputs)) {
      try {
        check_known(question);
        if (node.type->desc().infer != nullptr)
          throw_status(node.type->desc().infer(host, &question), "");
      } catch (Error& error) {
        error.at(graph.name_of(n));
        throw;
      }
    }
    for (ValueSpec& spec : question.answer.outputs)
      if (spec.value && spec.tensors.empty()) add_tensors(*spec.value, "", spec);
    for (std::uint32_t o = 0; o < node.type->output_count(); ++o)
      if (const ValueSpec& spec = question.answer.outputs[o];
          spec.tensors.empty() && spec.parts.empty() && !spec.value)
        result.pending.push_back({n, node.type->output(o).name});
    result.nodes[n] = std::move(question.answer);
  }
  return result;
}

}  // namespace heddle::engine
