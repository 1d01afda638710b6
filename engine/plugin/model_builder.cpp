#include "engine/plugin/model_builder.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/device/device.h"
#include "engine/device/status.h"
#include "engine/graph/dag.h"
#include "engine/tensor/call.h"

// A model's graph under construction.
struct heddle_graph {
  const heddle::engine::Catalog& catalog;
  const heddle::engine::Checkpoint& checkpoint;
  heddle::engine::Graph graph;
  heddle::engine::Record settings;
};

namespace heddle::engine {

namespace {

// Node ids of the ABI count from 1: 0 is the graph itself.
Node& node_at(heddle_graph* g, heddle_node_id id) {
  if (id == 0 || id > g->graph.nodes.size())
    throw Error(Code::invalid_argument, cat("there is no block number ", id));
  return g->graph.nodes[id - 1];
}

// What a block's input holds until set() says otherwise.
Value default_of(const heddle_widget& w) {
  switch (w.kind) {
    case HEDDLE_WIDGET_INT:
    case HEDDLE_WIDGET_SEED:
      return make_value(std::int64_t(w.number));
    case HEDDLE_WIDGET_FLOAT:
      return make_value(w.number);
    case HEDDLE_WIDGET_TOGGLE:
      return make_value(w.number != 0);
    default:
      return make_value(std::string(w.text == nullptr ? "" : w.text));
  }
}

std::vector<std::string_view> port_names(std::uint32_t count, const heddle_port* const* ports) {
  std::vector<std::string_view> names;
  for (std::uint32_t i = 0; i < count; ++i) names.push_back(ports[i]->name);
  return names;
}

std::vector<std::string_view> block_names(const Catalog& catalog) {
  std::vector<std::string_view> names;
  for (const std::string_view name : catalog.type_names())
    if (catalog.find(name)->has(HEDDLE_NODE_BLOCK)) names.push_back(name);
  return names;
}

std::uint32_t input_of(const Node& node, const char* name) {
  if (const auto port = node.type->find_input(name)) return *port;
  throw Error(
      Code::invalid_argument,
      cat("block ", node.id, " (", node.type->name(), ") has no input ", quote(name), ".",
          did_you_mean(name, port_names(node.type->input_count(), node.type->desc().inputs))));
}

Source source_of(heddle_graph* g, heddle_node_id from, const char* output) {
  if (from == 0) {
    for (std::uint32_t i = 0; i < g->graph.inputs.size(); ++i)
      if (g->graph.inputs[i].name == output) return {kGraphInputs, i};
    throw Error(Code::invalid_argument,
                cat("the model has no input ", quote(output), ". Make it with input() first."));
  }
  const Node& node = node_at(g, from);
  if (const auto port = node.type->find_output(output)) return {from - 1, *port};
  throw Error(
      Code::invalid_argument,
      cat("block ", node.id, " (", node.type->name(), ") has no output ", quote(output), ".",
          did_you_mean(output, port_names(node.type->output_count(), node.type->desc().outputs))));
}

heddle_status* add(heddle_graph* g, const char* type, const char* name, heddle_node_id* out) {
  return to_status([&] {
    NodeTypeRef found = g->catalog.find(type);
    if (found == nullptr || !found->has(HEDDLE_NODE_BLOCK))
      throw Error(Code::not_found, cat("there is no block type ", quote(type), ".",
                                       did_you_mean(type, block_names(g->catalog))));
    Node node;
    node.id = name;
    node.inputs.resize(found->input_count());
    node.weights.resize(found->slot_count());
    for (std::uint32_t i = 0; i < found->input_count(); ++i)
      if (const heddle_widget* w = found->input(i).widget; w != nullptr)
        node.inputs[i] = default_of(*w);
    node.type = std::move(found);
    g->graph.nodes.push_back(std::move(node));
    *out = heddle_node_id(g->graph.nodes.size());
  });
}

heddle_status* set(heddle_graph* g, heddle_node_id id, const char* input, heddle_value* literal) {
  return to_status([&] {
    Value value = Value::adopt(literal);
    Node& node = node_at(g, id);
    node.inputs[input_of(node, input)] = std::move(value);
  });
}

heddle_status* weight(heddle_graph* g, heddle_node_id id, const char* slot, std::uint32_t count,
                      const heddle_part* const* parts) {
  return to_status([&] {
    Node& node = node_at(g, id);
    const auto found = node.type->find_slot(slot);
    if (!found)
      throw Error(Code::invalid_argument, cat("block ", node.id, " (", node.type->name(),
                                              ") has no weight slot ", quote(slot)));
    std::vector<WeightPart> list;
    for (std::uint32_t i = 0; i < count; ++i) {
      const TensorView& tensor = g->checkpoint.at(parts[i]->tensor);  // or the nearest names
      const bool has_frame = parts[i]->size > offsetof(heddle_part, frame);
      const std::int64_t frame = has_frame ? parts[i]->frame : 0;
      const std::size_t axes = tensor.shape.size();
      const bool has_frames = axes == 3 || (axes == 5 && frame > 0);
      if (frame != 0 && (!has_frames || frame > tensor.shape[2] || frame < -tensor.shape[2]))
        throw Error(Code::invalid_argument,
                    cat("block ", node.id, ", ", quote(slot), ": ", quote(tensor.name), " (",
                        join(tensor.shape, ", "), ") has no filters of a frame ", frame));
      list.push_back({parts[i]->tensor, parts[i]->begin, parts[i]->end, frame});
    }
    node.weights[*found] = std::move(list);
  });
}

heddle_status* link(heddle_graph* g, heddle_node_id from, const char* output, heddle_node_id to,
                    const char* input) {
  return to_status([&] {
    const Source source = source_of(g, from, output);
    Node& node = node_at(g, to);
    node.inputs[input_of(node, input)] = source;
  });
}

heddle_status* add_input(heddle_graph* g, const char* name, std::uint32_t flags) {
  return to_status([&] {
    for (const GraphInput& i : g->graph.inputs)
      if (i.name == name)
        throw Error(Code::invalid_argument, cat("the model has two inputs ", quote(name)));
    g->graph.inputs.push_back({name, flags});
  });
}

heddle_status* add_output(heddle_graph* g, heddle_node_id from, const char* output,
                          const char* name) {
  return to_status([&] { g->graph.outputs.push_back({name, source_of(g, from, output)}); });
}

heddle_status* add_setting(heddle_graph* g, const char* key, heddle_value* value) {
  return to_status([&] { g->settings.fields.emplace_back(key, Value::adopt(value)); });
}

heddle_status* shard(heddle_graph* g, heddle_node_id id, const char* slot, std::int32_t axis,
                     std::uint32_t count, const heddle_segment* const* segments) {
  return to_status([&] {
    Node& node = node_at(g, id);
    const auto found = node.type->find_slot(slot);
    if (!found || node.weights[*found].empty())
      throw Error(Code::invalid_argument, cat("block ", node.id, ": the slot ", quote(slot),
                                              " is not filled, so it cannot be divided"));
    if (axis < 0 || axis > 1)
      throw Error(Code::invalid_argument, cat("block ", node.id, ": the slot ", quote(slot),
                                              " cannot be divided along axis ", axis));
    WeightShard cut{axis, {}};
    for (std::uint32_t i = 0; i < count; ++i) {
      const heddle_segment& s = *segments[i];
      if (s.length < 0 || s.unit <= 0 || s.length % s.unit != 0)
        throw Error(Code::invalid_argument,
                    cat("block ", node.id, ", slot ", quote(slot), ": a segment of ", s.length,
                        " has no whole units of ", s.unit));
      cut.segments.push_back({s.length, s.unit});
    }
    node.shards.resize(node.weights.size());
    node.shards[*found] = std::move(cut);
  });
}

void check(Graph& graph) {
  if (graph.outputs.empty()) throw Error(Code::internal, "the model has no outputs");
  Dag dag{std::uint32_t(graph.nodes.size()), {}};
  for (NodeIndex n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      if (const auto* source = std::get_if<Source>(&node.inputs[i]);
          source != nullptr && source->node != kGraphInputs)
        dag.edges.emplace_back(source->node, n);
      if (std::holds_alternative<std::monostate>(node.inputs[i]) &&
          (node.type->input(i).flags & HEDDLE_PORT_OPTIONAL) == 0)
        throw Error(Code::internal, cat("block ", node.id, ": its input ",
                                        quote(node.type->input(i).name), " is not linked"));
    }
    for (std::uint32_t s = 0; s < node.weights.size(); ++s)
      if (node.weights[s].empty() && (node.type->slot(s).flags & HEDDLE_PORT_OPTIONAL) == 0)
        throw Error(Code::internal, cat("block ", node.id, ": its weight ",
                                        quote(node.type->slot(s).name), " is not given"));
  }
  graph.order = topological_order(dag);
  if (graph.order.size() != graph.nodes.size()) {
    std::vector<std::string> names;
    const std::vector<std::vector<std::uint32_t>> found = cycles(dag);
    for (const std::uint32_t n : found.front()) names.push_back(graph.nodes[n].id);
    throw Error(Code::internal, cat("the model's blocks form a cycle: ", join(names, " -> ")));
  }
}

}  // namespace

Value build_model(const Catalog& catalog, std::string_view role, const Checkpoint& checkpoint,
                  const heddle_value* config, const Hints& hints) {
  const heddle_checkpoint file(checkpoint);
  const ModelFamily* best = nullptr;
  std::int32_t best_answer = 0;
  std::vector<std::string> asked;
  for (const ModelFamily& family : catalog.families()) {
    if (role != family.desc->role) continue;
    asked.emplace_back(family.desc->family);
    const std::int32_t answer = family.desc->match(plugin_host(), &file, config);
    if (answer > best_answer) {
      best = &family;
      best_answer = answer;
    }
  }
  if (best == nullptr)
    throw Error(Code::unsupported, cat(file.path, ": no model family of role ", quote(role),
                                       " knows these ", file.infos.size(), " tensors",
                                       asked.empty() ? "; no plugin brings one"
                                                     : cat(" (asked: ", join(asked, ", "), ")")));
  heddle_graph building{catalog, checkpoint, {}, {}};
  try {
    throw_status(best->desc->build(plugin_host(), &file, config, &building), "");
    check(building.graph);
  } catch (Error& error) {
    error.at(cat(file.path, " as ", best->desc->family));
    throw;
  }
  auto model = std::make_shared<Model>();
  model->family = best->desc->family;
  model->role = role;
  model->identity = Hasher()
                        .add(checkpoint.identity())
                        .add(std::string_view(best->desc->family))
                        .add(best->desc->version)
                        .finish();
  model->graph = std::make_shared<const Graph>(std::move(building.graph));
  model->checkpoint = std::make_shared<const Checkpoint>(checkpoint);
  model->settings = make_value(std::move(building.settings));
  model->hints = hints;
  model->catalog = catalog.weak_from_this();
  return make_value(std::shared_ptr<const Model>(std::move(model)));
}

const heddle_graph_service* graph_service() {
  static const heddle_graph_service table{&add,       &set,        &weight,      &link,
                                          &add_input, &add_output, &add_setting, &shard};
  return &table;
}

}  // namespace heddle::engine
