#include "engine/run/expander.h"

#include <algorithm>
#include <numeric>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/graph/dag.h"
#include "engine/place/place.h"
#include "engine/resources/device_recovery.h"

namespace heddle::engine {

namespace {

// An expansion without end meets one of these: nodes of a run that came while it was under way, and
// expansions of nodes that came by expansion. Ids grow with the second, so their bytes with its
// square.
constexpr std::size_t kMostNodes = 1'000'000;
constexpr std::uint32_t kMostLevels = 2'000;

[[noreturn]] void refuse_expansion(std::string_view text) {
  throw Error(Code::invalid_argument, std::string(text));
}

std::string shown(const NewNode& node) {
  return cat("node ", quote(clip(node.id, 200)), " (", node.class_type, ")");
}

}  // namespace

Expander::Expander(RunGraph& run, Environment& environment)
    : run_(run), environment_(environment), literals_(*environment.catalog) {}

void Expander::index_planned() {
  if (std::exchange(is_indexed_, true)) return;
  is_planned_.resize(run_.planned_count(), false);
  for (const NodeIndex n : run_.order()) is_planned_[n] = true;
  by_id_.reserve(2 * run_.planned_count());
  for (NodeIndex n = 0; n < run_.planned_count(); ++n) by_id_.emplace(run_.node(n).id, n);
}

NodeIndex Expander::find(std::string_view id) {
  index_planned();
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? kGraphInputs : found->second;
}

Expander::Batch Expander::read(NodeIndex parent, std::span<const NewNodes* const> calls) {
  index_planned();
  here_.clear();
  brought_.clear();
  outer_.clear();
  Batch batch;
  const Node& asking = run_.node(parent);
  const NodeOrigin* const above = asking.origin.get();
  const auto origin = std::make_shared<NodeOrigin>();
  origin->parent = asking.id;
  origin->display = above == nullptr ? asking.id : above->display;
  origin->real = above == nullptr ? asking.id : above->real;
  origin->level = above == nullptr ? 1 : above->level + 1;
  std::size_t count = run_.size() - run_.planned_count();
  for (const NewNodes* call : calls) count += call->nodes.size();
  if (origin->level > kMostLevels || count > kMostNodes)
    refuse_expansion(
        cat("its expansion has no end: ", origin->level, " expansions within each other, and ",
            count, " nodes that came while the run was under way, where ", kMostLevels, " and ",
            kMostNodes, " are allowed. Give the loop a condition on which it stops."));
  for (const NewNodes* call : calls)
    for (const NewNode& asked : call->nodes) {
      read_node(asked, batch);
      batch.nodes.back().origin = origin_of(asked, origin);
      batch.nodes.back().hints = asking.hints;
    }
  return batch;
}

std::shared_ptr<const NodeOrigin> Expander::origin_of(
    const NewNode& asked, const std::shared_ptr<const NodeOrigin>& usual) {
  if (asked.display.empty()) return usual;
  auto own = std::make_shared<NodeOrigin>(*usual);
  own->display = asked.display;
  if (const NodeIndex shown = find(asked.display); shown != kGraphInputs)
    if (const auto& origin = run_.node(shown).origin) own->display = origin->display;
  return own;
}

void Expander::read_node(const NewNode& asked, Batch& batch) {
  const auto local = static_cast<NodeIndex>(batch.nodes.size());
  if (asked.id.empty()) refuse_expansion("it expands into a node without an id");
  if (by_id_.contains(asked.id) || !here_.emplace(asked.id, local).second)
    refuse_expansion(
        cat("it expands into ", shown(asked),
            ", but there is a node of this id already. Begin ids with the prefix of the call."));
  Node& node = batch.nodes.emplace_back();
  node.id = asked.id;
  node.type = environment_.catalog->find(asked.class_type);
  if (node.type == nullptr || node.type->has(HEDDLE_NODE_BLOCK))
    refuse_expansion(cat("it expands into ", shown(asked), ", a class that no plugin has"));
  node.inputs.resize(node.type->input_count());
  std::vector<bool> given(node.inputs.size(), false);
  for (const auto& [name, value] : asked.inputs) {
    const std::optional<std::uint32_t> port = node.type->find_input(name);
    if (port && (node.type->input(*port).flags & HEDDLE_PORT_HIDDEN) != 0) continue;
    if (port) given[*port] = true;
    if (!port) node.extra.emplace_back(name, Binding());
    if (const auto* literal = std::get_if<Value>(&value))
      set_literal(asked, name, *literal, node);
    else
      batch.links.push_back({local,
                             port ? *port : static_cast<std::uint32_t>(node.extra.size() - 1),
                             !port, &std::get<NewLink>(value)});
  }
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    const heddle_port& port = node.type->input(i);
    if (given[i] || (port.flags & HEDDLE_PORT_HIDDEN) != 0) continue;
    const std::optional<Literal>& otherwise = literals_.default_of(port, node.type->check(i));
    if (otherwise && std::holds_alternative<Value>(*otherwise))
      node.inputs[i] = std::get<Value>(*otherwise);
  }
}

void Expander::set_literal(const NewNode& asked, const std::string& name, const Value& value,
                           Node& node) {
  const std::optional<std::uint32_t> port = node.type->find_input(name);
  if (!port) {
    node.extra.back().second = value;
    return;
  }
  // Nothing where nothing has to be is as good as absent.
  const bool is_optional = (node.type->input(*port).flags & HEDDLE_PORT_OPTIONAL) != 0;
  if (kind_of(*value) == HEDDLE_KIND_NONE && is_optional) return;
  if (const auto fault = node.type->check(*port).fault_of(*value, environment_.catalog.get()))
    refuse_expansion(cat("it expands into ", shown(asked), ", input ", quote(name), ": ", *fault));
  node.inputs[*port] = value;
}

void Expander::resolve(Batch& batch, std::span<const NewNodes* const> calls, const Stand& stand) {
  const std::size_t asked = batch.nodes.size();
  const auto named = [&](const NewLink& link, const std::string& where) {
    NodeIndex n = kGraphInputs;
    const auto local = here_.find(link.node);
    if (local != here_.end())
      n = local->second;
    else if (const NodeIndex found = find(link.node); found != kGraphInputs)
      n = kOuter + found;
    const Node* node = n == kGraphInputs ? nullptr
                       : n < kOuter      ? &batch.nodes[n]
                                         : &run_.node(n - kOuter);
    if (node == nullptr)
      refuse_expansion(
          cat(where, " is linked to ", quote(link.node), ", but there is no such node"));
    if (link.output >= node->type->output_count())
      refuse_expansion(cat(where, " is linked to output ", link.output, " of ", quote(link.node),
                           " (", node->type->name(), "), which has ", node->type->output_count(),
                           " outputs"));
    if (n < kOuter) return Source{n, link.output};
    return resolve_link(batch, {n - kOuter, link.output}, stand);
  };
  for (std::size_t l = 0; l < batch.links.size(); ++l) {
    const Batch::Pending link = batch.links[l];
    const auto name = [&] {
      const Node& node = batch.nodes[link.node];
      return link.is_extra ? node.extra[link.input].first
                           : std::string(node.type->input(link.input).name);
    };
    const Source from = named(
        *link.link, cat("node ", quote(batch.nodes[link.node].id), ", input ", quote(name())));
    Node& node = batch.nodes[link.node];
    (link.is_extra ? node.extra[link.input].second : node.inputs[link.input]) = from;
  }
  for (const NewNodes* call : calls) {
    std::vector<Source>& results = batch.results.emplace_back();
    for (const auto& [output, link] : call->outputs)
      results.push_back(named(link, cat("output ", output)));
  }
  // What was brought reads what its original read, and may bring more.
  for (std::size_t b = asked; b < batch.nodes.size(); ++b) {
    const auto rebind = [&](auto&& binding_of) {
      if (const auto* link = std::get_if<Source>(&binding_of(batch.nodes[b]))) {
        const Source from = resolve_link(batch, *link, stand);
        binding_of(batch.nodes[b]) = from;
      }
    };
    for (std::size_t i = 0; i < batch.nodes[b].inputs.size(); ++i)
      rebind([i](Node& node) -> Binding& { return node.inputs[i]; });
    for (std::size_t i = 0; i < batch.nodes[b].extra.size(); ++i)
      rebind([i](Node& node) -> Binding& { return node.extra[i].second; });
  }
}

Source Expander::resolve_link(Batch& batch, Source source, const Stand& stand) {
  const auto standing_of = [&](const Source& of) {
    const bool is_unplanned = of.node < run_.planned_count() && !is_planned_[of.node];
    return is_unplanned ? Standing::gone : stand(of);
  };
  Standing standing = standing_of(source);
  if (standing == Standing::gone) {
    // Perhaps it has been brought before.
    const Source newest{by_id_.find(run_.node(source.node).id)->second, source.port};
    if (newest.node != source.node) standing = standing_of(source = newest);
  }
  if (standing == Standing::gone) return {bring(batch, source.node), source.port};
  const auto [at, is_new] =
      outer_.try_emplace(source.node, static_cast<std::uint32_t>(batch.outer.size()));
  if (is_new) batch.outer.push_back(source.node);
  if (standing == Standing::made) batch.made.push_back(source);
  return {kOuter + at->second, source.port};
}

// A node that is made for the new ones, as the workflow has it.
NodeIndex Expander::bring(Batch& batch, NodeIndex outer) {
  const auto local = static_cast<NodeIndex>(batch.nodes.size());
  const auto [at, is_new] = brought_.try_emplace(outer, local);
  if (!is_new) return at->second;
  const Node& original = run_.node(outer);
  batch.nodes.push_back(original);
  here_.emplace(original.id, local);
  return local;
}

void Expander::order(Batch& batch) const {
  Dag dag{static_cast<std::uint32_t>(batch.nodes.size()), {}};
  bool is_ordered = true;
  for (NodeIndex n = 0; n < batch.nodes.size(); ++n)
    for_each_binding(batch.nodes[n], [&](const Binding& binding) {
      const auto* link = std::get_if<Source>(&binding);
      if (link == nullptr || link->node >= kOuter) return;
      dag.edges.emplace_back(link->node, n);
      is_ordered = is_ordered && link->node < n;
    });
  std::vector<NodeIndex> position(batch.nodes.size());
  std::iota(position.begin(), position.end(), NodeIndex{0});
  if (!is_ordered) {
    const std::vector<std::uint32_t> order = topological_order(dag);
    if (order.size() < batch.nodes.size()) {
      std::vector<std::string> ids;
      const std::vector<std::vector<std::uint32_t>> all = cycles(dag);
      for (const std::uint32_t n : all.front()) ids.push_back(quote(batch.nodes[n].id));
      refuse_expansion(cat("Dependency cycle detected: ", join(ids, " -> "), " -> ", ids.front()));
    }
    std::vector<Node> nodes;
    for (const std::uint32_t n : order) {
      position[n] = static_cast<NodeIndex>(nodes.size());
      nodes.push_back(std::move(batch.nodes[n]));
    }
    batch.nodes = std::move(nodes);
    const auto move = [&](Source& source) {
      if (source.node < kOuter) source.node = position[source.node];
    };
    const auto move_link = [&](Binding& binding) {
      if (auto* link = std::get_if<Source>(&binding)) move(*link);
    };
    for (Node& node : batch.nodes) {
      for (Binding& binding : node.inputs) move_link(binding);
      for (auto& [name, binding] : node.extra) move_link(binding);
    }
    for (std::vector<Source>& results : batch.results) std::ranges::for_each(results, move);
  }
}

// Of the new nodes, and behind them what they read of the run, standing still at its place.
Graph Expander::graph_of(const Batch& batch) const {
  Graph graph;
  graph.nodes.reserve(batch.nodes.size() + batch.outer.size());
  for (const NodeIndex n : batch.outer) {
    const Node& of_run = run_.node(n);
    Node& outer_node = graph.nodes.emplace_back();
    outer_node.id = of_run.id;
    outer_node.type = of_run.type;
    outer_node.inputs.resize(of_run.inputs.size());
    outer_node.is_mapped = true;  // so that nothing is asked of it
    const Assignment& place = run_.place(n);
    if (!place.on_host) outer_node.hints.device = environment_.topology.devices[place.device].name;
  }
  const auto first = static_cast<NodeIndex>(batch.outer.size());
  const auto moved = [&](Binding binding) {
    if (auto* link = std::get_if<Source>(&binding))
      link->node = link->node < kOuter ? link->node + first : link->node - kOuter;
    return binding;
  };
  for (const Node& node : batch.nodes) {
    Node& copy = graph.nodes.emplace_back(node);
    bool reads_list = false;
    for (Binding& binding : copy.inputs) binding = moved(std::move(binding));
    for (auto& [name, binding] : copy.extra) binding = moved(std::move(binding));
    copy.is_mapped = false;
    if (!copy.type->takes_lists())
      for_each_binding(node, [&](const Binding& binding) {
        const auto* link = std::get_if<Source>(&binding);
        if (link == nullptr) return;
        const bool is_outer = link->node >= kOuter;
        reads_list |= is_outer ? run_.is_list({batch.outer[link->node - kOuter], link->port})
                               : is_list(graph, {link->node + first, link->port});
      });
    copy.is_mapped = reads_list;
  }
  graph.order.resize(graph.nodes.size());
  std::iota(graph.order.begin(), graph.order.end(), NodeIndex{0});
  return graph;
}

// Where there is nothing to choose, nothing is weighed.
Placement Expander::place(const Graph& graph, const Inferred& inferred, std::size_t outer) const {
  bool has_choice = false;
  for (std::size_t n = outer; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const Hints& hints = node.hints;
    const bool has_hints = !hints.device.empty() || !hints.prefer.empty() ||
                           !hints.parallel.empty() || !hints.blocks.empty();
    has_choice |= has_hints || !inferred.nodes[n].calls.empty() ||
                  (!node.type->has(HEDDLE_NODE_HOST) && environment_.devices.size() > 1);
  }
  if (!has_choice) return place_on_first(graph);
  Topology topology = topology_now(environment_);
  topology.lends_memory = run_.borrows_memory();
  return engine::place({.graph = graph,
                        .inferred = inferred,
                        .topology = topology,
                        .costs = environment_.costs,
                        .misfits = PlaceRequest::Misfits::warned,
                        .fidelity = run_.fidelity()});
}

void Expander::plan(Batch& batch, const Planning& planning) {
  order(batch);
  const std::size_t outer = batch.outer.size();
  Graph graph = graph_of(batch);
  Facts facts;
  for (const Source& source : batch.made) {
    const Value& value = run_.output(source);
    if (find_blocker(*value) == nullptr)
      facts.emplace(Source{outer_.at(source.node), source.port}, value);
  }
  const Inferred inferred = infer(graph, environment_.host, facts, environment_.catalog.get());
  Plan plan = make_plan(graph, place(graph, inferred, outer), inferred, environment_.topology);
  for (Assignment& each : plan.assignments) each.borrows_memory = run_.borrows_memory();
  std::vector<Hash128> keys(graph.nodes.size());
  for (std::size_t i = 0; i < outer; ++i) keys[i] = planning.key_of(batch.outer[i]);
  std::uint32_t home = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    const std::uint32_t outputs = node.type->output_count();
    const std::uint32_t first_home = home;
    home += outputs;
    if (n < outer) continue;
    const Assignment& place = plan.assignments[n];
    keys[n] = node_key(
        node, place, planning.device_classes, [&](NodeIndex m) { return keys[m]; },
        [&] { return planning.fingerprint(node, place); });
    batch.planned.push_back({std::move(node),
                             std::move(plan.assignments[n]),
                             plan.host_bytes[n],
                             plan.device_bytes[n],
                             {plan.homes.begin() + first_home, plan.homes.begin() + home},
                             keys[n]});
  }
}

Source Expander::in_run(const Batch& batch, const Source& source) {
  return {source.node >= kOuter ? batch.outer[source.node - kOuter] : batch.index[source.node],
          source.port};
}

void Expander::add(Batch& batch) {
  const std::size_t outer = batch.outer.size();
  for (AddedNode& node : batch.planned) {
    const auto link = [&](Binding& binding) {
      if (auto* source = std::get_if<Source>(&binding))
        source->node =
            source->node < outer ? batch.outer[source->node] : batch.index[source->node - outer];
    };
    for (Binding& binding : node.node.inputs) link(binding);
    for (auto& [name, binding] : node.node.extra) link(binding);
    std::string id = node.node.id;
    const NodeIndex index = run_.add(std::move(node));
    batch.index.push_back(index);
    by_id_.insert_or_assign(std::move(id), index);
  }
}

}  // namespace heddle::engine
