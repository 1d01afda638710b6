#include "engine/graph/graph_text.h"

#include <numeric>

#include "engine/base/text.h"
#include "heddle/abi/model.h"

namespace heddle::engine {
namespace {

constexpr std::size_t kLongestShown = 48;  // bytes

std::string source_text(const Graph& graph, const Source& source) {
  if (source.node == kGraphInputs) {
    return source.port < graph.inputs.size() ? cat("@", graph.inputs[source.port].name)
                                             : cat("@", source.port);
  }
  if (source.node >= graph.nodes.size()) return cat("?", source.node, ".", source.port);
  const Node& node = graph.nodes[source.node];
  const bool known = node.type != nullptr && source.port < node.type->output_count();
  return known ? cat(node.id, ".", node.type->output(source.port).name)
               : cat(node.id, ".", source.port);
}

std::string literal_text(const heddle_value& value) {
  const heddle_kind kind = kind_of(value);
  // Lists and records may hold what JSON cannot say; what they are is enough for a line.
  if (kind > HEDDLE_KIND_STR) return cat("<", clip(describe(value), kLongestShown), ">");
  if (kind == HEDDLE_KIND_STR) return write_json(Json(clip(get_str(value), kLongestShown)));
  return write_json(to_json(value));
}

std::string binding_text(const Graph& graph, std::string_view name, const Binding& binding) {
  if (const Source* source = std::get_if<Source>(&binding))
    return cat(" ", name, "=", source_text(graph, *source));
  if (const Value* value = std::get_if<Value>(&binding))
    return cat(" ", name, "=", literal_text(**value));
  return "";
}

std::string weight_text(std::string_view slot, const std::vector<WeightPart>& parts) {
  std::vector<std::string> texts;
  for (const WeightPart& part : parts) {
    const bool all = part.begin == 0 && part.end < 0;
    texts.push_back(
        all ? part.tensor
            : cat(part.tensor, "[", part.begin, ":", part.end < 0 ? "" : cat(part.end), "]"));
    if (part.frame != 0) texts.back() += cat("@", part.frame);
  }
  return cat(" ", slot, "<-", join(texts, "+"));
}

std::string hints_text(const Hints& hints) {
  std::string text;
  if (!hints.device.empty()) text += cat(" device=", hints.device);
  if (!hints.prefer.empty()) text += cat(" prefer=", hints.prefer);
  if (!hints.parallel.empty()) text += cat(" parallel=", hints.parallel);
  for (const BlockHint& block : hints.blocks) text += cat(" ", block.match, "->", block.device);
  return text.empty() ? "" : cat(" |", text);
}

std::string node_text(const Graph& graph, NodeIndex index) {
  const Node& node = graph.nodes[index];
  std::string text = cat(index, " ", node.id, " ", node.type == nullptr ? "?" : node.type->name());
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
    text += binding_text(graph, node.type == nullptr ? cat(i) : node.type->input(i).name,
                         node.inputs[i]);
  for (const auto& [name, binding] : node.extra)
    text += binding_text(graph, cat("+", name), binding);
  for (std::uint32_t i = 0; i < node.weights.size(); ++i)
    if (!node.weights[i].empty())
      text += weight_text(node.type == nullptr ? cat(i) : node.type->slot(i).name, node.weights[i]);
  return text + hints_text(node.hints) + "\n";
}

std::string_view phase_name(std::uint32_t flags) {
  switch (flags & HEDDLE_INPUT_PHASE_MASK) {
    case HEDDLE_INPUT_PER_STEP:
      return "per step";
    case HEDDLE_INPUT_LOOP_INVARIANT:
      return "loop-invariant";
    case HEDDLE_INPUT_PRECOMPUTED:
      return "precomputed";
    default:
      return "?";
  }
}

}  // namespace

std::string graph_text(const Graph& graph) {
  std::string text;
  for (const GraphInput& input : graph.inputs) {
    text += cat("input ", input.name, " ", phase_name(input.flags),
                (input.flags & HEDDLE_INPUT_OPTIONAL) != 0 ? " optional" : "",
                (input.flags & HEDDLE_INPUT_BATCH) != 0 ? " batch" : "", "\n");
  }
  std::vector<NodeIndex> order = graph.order;
  if (order.empty()) {
    order.resize(graph.nodes.size());
    std::iota(order.begin(), order.end(), NodeIndex{0});
  }
  for (const NodeIndex node : order) text += node_text(graph, node);
  for (const GraphOutput& output : graph.outputs)
    text += cat("output ", output.name, " = ", source_text(graph, output.from), "\n");
  return text;
}

}  // namespace heddle::engine
