#include "engine/graph/bind.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <utility>

#include "engine/base/text.h"
#include "engine/graph/bind_advice.h"
#include "engine/graph/bind_faults.h"
#include "engine/graph/dag.h"
#include "engine/graph/dynamic_inputs.h"
#include "engine/graph/lacking.h"
#include "engine/graph/lists.h"
#include "engine/graph/literal.h"
#include "engine/graph/loops.h"
#include "engine/graph/missing_models.h"
#include "engine/graph/needed_nodes.h"
#include "engine/graph/prompt_errors.h"
#include "engine/graph/prompt_verdict.h"
#include "engine/graph/run_targets.h"
#include "engine/graph/type_match.h"
#include "engine/graph/validation.h"

namespace heddle::engine {
namespace {

using Severity = Problem::Severity;

// Nodes are numbered as in the workflow until those are left out that no sink needs.
class Binder {
  using Place = BindFaults::Place;

 public:
  Binder(const Workflow& workflow, const Catalog& catalog, const GivenValues& values,
         std::uint64_t prompt_limit)
      : workflow_(workflow),
        catalog_(catalog),
        values_(values),
        prompt_limit_(prompt_limit),
        literals_(catalog),
        advice_(workflow, catalog, types_),
        faults_(workflow) {}

  Bound bind() {
    const auto count = static_cast<NodeIndex>(workflow_.nodes.size());
    dag_.node_count = count;
    dag_.edges.reserve(count);
    by_id_.reserve(count);
    types_.reserve(count);
    boost::unordered_flat_map<std::string_view, NodeTypeRef> by_class;  // few, asked for often
    for (NodeIndex i = 0; i < count; ++i) {
      const WorkflowNode& node = workflow_.nodes[i];
      by_id_.emplace(node.id, i);
      const auto [at, is_new] = by_class.try_emplace(node.class_type);
      if (is_new) at->second = catalog_.find(node.class_type);
      types_.push_back(at->second);
    }
    graph_.nodes.reserve(count);
    for (NodeIndex i = 0; i < count; ++i) bind_node(i, graph_.nodes.emplace_back());
    ask_validators();
    bind_loops();
    const std::vector<NodeIndex> wanted = find_sinks();
    std::vector<NodeIndex> order = topological_order(dag_);
    if (order.size() < count) report_cycles();
    Verdict verdict = judge(faults_.take(), workflow_, dag_, wanted);
    const bool can_run = !verdict.sinks.empty();
    const std::vector<NodeIndex>& sinks = can_run ? verdict.sinks : wanted;
    const auto grows = [&](NodeIndex i) { return can_run && types_[i]->has(HEDDLE_NODE_EXPANDS); };
    graph_ = keep_needed(std::move(graph_.nodes), dag_, sinks, std::move(order), grows);
    const auto makes_lists = [](const NodeTypeRef& type) { return type && type->makes_lists(); };
    if (std::ranges::any_of(types_, makes_lists)) mark_mapped(graph_);  // else nothing is mapped
    return {std::move(graph_), std::move(verdict.problems), can_run, std::move(verdict.answer)};
  }

 private:
  std::vector<std::string_view> ids() const {
    std::vector<std::string_view> names;
    for (const WorkflowNode& node : workflow_.nodes) names.emplace_back(node.id);
    return names;
  }

  void bind_node(NodeIndex i, Node& node) {
    const WorkflowNode& source = workflow_.nodes[i];
    node.id = source.id;
    node.title = source.title;
    node.type = types_[i];
    const Hints& hints = source.hints;  // most nodes have none
    if (!(hints.device.empty() && hints.prefer.empty() && hints.parallel.empty() &&
          hints.blocks.empty() && hints.device_from.empty() && hints.parallel_from.empty()))
      node.hints = hints;
    if (node.type == nullptr) {
      report_unknown_class(i);
      // Its links still say which nodes are needed.
      for (const WorkflowInput& input : source.inputs)
        if (const Link* link = std::get_if<Link>(&input.value))
          link_to({i, &input, input.name}, *link, Severity::warning);
      return;
    }
    if (node.type->has(HEDDLE_NODE_BLOCK))
      faults_.report(i,
                     cat(faults_.shown(i),
                         " is a block: it belongs into a model, not into a workflow. Remove it."),
                     unknown_class_error(workflow_.nodes[i]), Fault::Reach::workflow);
    node.inputs.resize(node.type->input_count());
    boost::container::small_vector<bool, 16> given(node.type->input_count(), false);
    take_values(i, node, given);
    for (const WorkflowInput& input : source.inputs) {
      const std::optional<std::uint32_t> port = node.type->find_input(input.name);
      if (!values_.empty() && values_.contains(std::pair(source.id, input.name))) continue;
      if (!port || is_hidden(node.type->input(*port))) {
        node.extra.emplace_back(input.name, bind_undeclared({i, &input, input.name}));
        continue;
      }
      given[*port] = true;
      node.inputs[*port] = bind_input({i, &input, input.name}, *port, input);
    }
    for (std::uint32_t p = 0; p < node.type->input_count(); ++p)
      if (!given[p]) node.inputs[p] = bind_absent({i, nullptr, node.type->input(p).name}, p);
    if (node.type->has(HEDDLE_NODE_ANY_INPUT)) check_dynamic(i);
    if (node.type->validator() != nullptr) judged_.push_back(i);
  }

  void check_dynamic(NodeIndex i) {
    const auto received = [&](const Link& link) -> std::optional<std::string_view> {
      const auto from = by_id_.find(link.node);
      if (from == by_id_.end() || types_[from->second] == nullptr) return std::nullopt;
      const NodeType& type = *types_[from->second];
      const auto* slot = std::get_if<std::uint32_t>(&link.output);
      const auto port = slot != nullptr ? std::optional(*slot)
                                        : type.find_output(std::get<std::string>(link.output));
      return port && *port < type.output_count() ? std::optional(type.output(*port).type)
                                                 : std::nullopt;
    };
    for (DynamicFault& f : dynamic_faults(*types_[i], workflow_.nodes[i], received, catalog_))
      faults_.report({i, f.given, f.input}, f.text, std::move(f.error));
  }

  // Validators are asked when all links are known.
  void ask_validators() {
    for (const NodeIndex i : judged_)
      for (JudgedFault& f : faults_of_validator(graph_.nodes[i], types_, catalog_, literals_)) {
        const std::vector<WorkflowInput>& given = workflow_.nodes[i].inputs;
        const auto input = std::ranges::find(given, f.input, &WorkflowInput::name);
        faults_.report({i, input == given.end() ? nullptr : &*input, f.input}, f.text,
                       std::move(f.error));
        faults_.last().lacks = std::move(f.lacks);
      }
  }

  void take_values(NodeIndex i, Node& node, boost::container::small_vector<bool, 16>& given) {
    if (values_.empty()) return;
    for (auto at = values_.lower_bound(std::pair(node.id, std::string()));
         at != values_.end() && at->first.first == node.id; ++at) {
      const std::optional<std::uint32_t> port = node.type->find_input(at->first.second);
      if (port) {
        given[*port] = true;
        node.inputs[*port] = at->second;
        if (const auto fault = node.type->check(*port).fault_of(*at->second, &catalog_))
          faults_.report_other({i, nullptr, at->first.second}, *fault);
        else
          check_prompt({i, nullptr, at->first.second}, node.type->input(*port), *at->second);
      } else {
        node.extra.emplace_back(at->first.second, at->second);
      }
    }
  }

  static bool is_hidden(const heddle_port& port) { return (port.flags & HEDDLE_PORT_HIDDEN) != 0; }
  // What grows is never missing itself, its inputs may be.
  static bool is_optional(const heddle_port& port) {
    const std::string_view type = port.type;
    return (port.flags & HEDDLE_PORT_OPTIONAL) != 0 || type == "COMFY_AUTOGROW_V3" ||
           type == "COMFY_DYNAMICGROUP_V3";
  }

  void report_unknown_class(NodeIndex i) {
    faults_.report(i,
                   cat(quote(workflow_.nodes[i].id), ": ",
                       advice_.for_unknown_class(workflow_.nodes[i].class_type)),
                   unknown_class_error(workflow_.nodes[i]), Fault::Reach::workflow);
    faults_.last().lacks = lacking_class(workflow_.nodes[i].class_type);
    for (const WorkflowInput& input : workflow_.nodes[i].inputs) {
      if (!names_missing_model(input, workflow_, catalog_)) continue;
      const std::string& file = std::get<Json>(input.value).as_string();
      faults_.report({i, &input, input.name},
                     cat("there is no file ", quote(file),
                         " in any model folder. Put it into the one that this class reads."),
                     {});
      faults_.last().lacks = lacking_file("*", file);
      faults_.last().reach = Fault::Reach::workflow;
    }
  }

  Binding bind_input(const Place& place, std::uint32_t p, const WorkflowInput& input) {
    const heddle_port& port = types_[place.node]->input(p);
    if (input.is_bad_link) {
      report_bad_link(place);
      return {};
    }
    if (const Link* link = std::get_if<Link>(&input.value)) {
      const std::optional<Source> source = link_to(place, *link, Severity::error);
      if (!source) return {};
      const NodeType& type = *types_[source->node];
      const heddle_port& output = type.output(source->port);
      if (accepts(port, output.type) || types_[place.node]->judges_links()) return *source;
      faults_.report(place,
                     cat("expects ", chooses(port) ? "a choice (COMBO)" : port.type, ", got ",
                         output.type, " from ", quote(link->node), " output ", source->port, " (",
                         output.name, "). ", advice_.for_mismatch(place.node, *source, port)),
                     type_error(port, output.type, *link, catalog_));
      return {};
    }
    const Json& literal = std::get<Json>(input.value);
    if (!takes_literals(port)) {
      if (literal.is_null() && is_optional(port)) return {};
      faults_.report(place,
                     cat("expects a link to ", port.type, ", got ", shown_literal(literal), ". ",
                         advice_.for_missing(place.node, port.type)),
                     literal_error(port, literal, catalog_));
      return {};
    }
    if (literal.is_null() && is_optional(port) && port.widget == nullptr) return {};
    const Literal read = literals_.read(port, types_[place.node]->check(p), literal);
    if (const LiteralFault* fault = std::get_if<LiteralFault>(&read)) {
      faults_.report(place, fault->text, literal_error(port, literal, catalog_));
      faults_.last().lacks = fault->lacks;
      return {};
    }
    Binding value = std::get<Value>(read);
    if (const Value* text = std::get_if<Value>(&value)) check_prompt(place, port, **text);
    return value;
  }

  void check_prompt(const Place& place, const heddle_port& port, const heddle_value& value) {
    if (const auto fault = prompt_fault(port, value, prompt_limit_))
      faults_.report_other(place, *fault);
  }

  Binding bind_absent(const Place& place, std::uint32_t p) {
    const NodeType& type = *types_[place.node];
    const heddle_port& port = type.input(p);
    if (is_hidden(port)) return {};
    if (const std::optional<Literal>& literal = literals_.default_of(port, type.check(p))) {
      if (const Value* value = std::get_if<Value>(&*literal)) return *value;
      faults_.report_other(place, std::get<LiteralFault>(*literal).text);
      return {};
    }
    if (is_optional(port)) return {};
    faults_.report(place,
                   port.widget != nullptr ? cat("it is required and has no default. ",
                                                advice_for_choosing(*port.widget))
                                          : cat("it is required: nothing is linked to it. ",
                                                advice_.for_missing(place.node, port.type)),
                   missing_error(port.name));
    return {};
  }

  Binding bind_undeclared(const Place& place) {
    const NodeType& type = *types_[place.node];
    const bool wanted = type.has(HEDDLE_NODE_ANY_INPUT);
    if (!wanted) {
      const std::string guess = advice_.guess(place.name, [&] { return input_names(type); });
      faults_.report(place, cat("the class has no such input.", guess, " It is ignored."), {},
                     Severity::warning);
    }
    const Link* link = std::get_if<Link>(&place.input->value);
    if (place.input->is_bad_link && wanted) report_bad_link(place);
    if (link == nullptr) return from_json(std::get<Json>(place.input->value));
    const std::optional<Source> source =
        link_to(place, *link, wanted ? Severity::error : Severity::warning);
    return source ? Binding(*source) : Binding();
  }

  // The output that a link means, and an edge for it. An edge, but nothing else, for a node of
  // unknown class.
  std::optional<Source> link_to(const Place& place, const Link& link, Severity severity) {
    const auto found = by_id_.find(link.node);
    if (found == by_id_.end()) {
      const std::string guess = advice_.guess(link.node, [&] { return ids(); });
      faults_.report(place,
                     cat("is linked to ", quote(link.node), ", but there is no such node.", guess,
                         " Link it to a node of this workflow."),
                     dangling(place, link, false), severity);
      return std::nullopt;
    }
    const NodeIndex from = found->second;
    dag_.edges.emplace_back(from, place.node);
    if (types_[from] == nullptr) return std::nullopt;
    const NodeType& type = *types_[from];
    if (const auto* slot = std::get_if<std::uint32_t>(&link.output)) {
      if (*slot < type.output_count()) return Source{from, *slot};
      faults_.report(place,
                     cat("is linked to output ", *slot, " of ", faults_.shown(from),
                         ", which has no such output. Outputs: ", outputs_of(type), "."),
                     dangling(place, link, true), severity);
      return std::nullopt;
    }
    const std::string& name = std::get<std::string>(link.output);
    if (const std::optional<std::uint32_t> output = type.find_output(name))
      return Source{from, *output};
    const std::string guess = advice_.guess(name, [&] { return output_names(type); });
    faults_.report(
        place,
        cat("is linked to output ", quote(name), " of ", faults_.shown(from),
            ", which has none of that name.", guess, " Outputs: ", outputs_of(type), "."),
        dangling(place, link, true), severity);
    return std::nullopt;
  }

  const heddle_port* port_of(const Place& place) const {
    const NodeTypeRef& type = types_[place.node];
    const auto port = type == nullptr ? std::nullopt : type->find_input(place.name);
    return port ? &type->input(*port) : nullptr;
  }
  Json dangling(const Place& place, const Link& link, bool has_node) const {
    return dangling_error(port_of(place), place.name, link, has_node, is_sink(place.node),
                          catalog_);
  }
  void report_bad_link(const Place& place) {
    const Json& array = std::get<Json>(place.input->value);
    faults_.report(
        place, bad_link_text(array),
        bad_link_error(port_of(place), place.name, array, is_sink(place.node), catalog_));
  }

  bool is_sink(NodeIndex i) const {
    return types_[i] != nullptr && types_[i]->has(HEDDLE_NODE_SINK) &&
           !(i < in_body_.size() && in_body_[i]);
  }

  std::vector<NodeIndex> find_sinks() {
    std::vector<NodeIndex> sinks;
    for (NodeIndex i = 0; i < dag_.node_count; ++i)
      if (is_sink(i)) sinks.push_back(i);
    if (sinks.empty()) faults_.report_whole(advice_.for_no_sink());
    std::vector<std::string> problems;
    std::vector<NodeIndex> wanted = wanted_sinks(workflow_, std::move(sinks), problems);
    for (const std::string& problem : problems) faults_.report_whole(problem);
    return wanted;
  }

  void report_cycles() {
    for (const std::vector<NodeIndex>& cycle : cycles(dag_)) {
      std::vector<const WorkflowNode*> nodes;
      for (const NodeIndex i : cycle) nodes.push_back(&workflow_.nodes[i]);
      faults_.report(cycle.front(),
                     cat(faults_.shown(cycle.front()), " ", advice_.for_cycle(cycle)),
                     cycle_error(nodes));
      faults_.last().also.assign(cycle.begin() + 1, cycle.end());
    }
  }

  // What stands in loops no longer runs by itself.
  void bind_loops() {
    constexpr std::uint32_t kBoundary = HEDDLE_NODE_LOOP_START | HEDDLE_NODE_LOOP_END;
    const auto is_boundary = [](const NodeTypeRef& type) { return type->has(kBoundary); };
    if (std::ranges::find(types_, nullptr) != types_.end()) return;
    if (std::ranges::none_of(types_, is_boundary)) return;
    const auto ids = [&](const std::vector<NodeIndex>& of) {
      std::vector<std::string> names;
      for (const NodeIndex i : of) names.push_back(workflow_.nodes[i].id);
      return names;
    };
    for (const LoopFault& f : engine::bind_loops(graph_, in_body_)) {
      const WorkflowNode& node = workflow_.nodes[f.nodes.front()];
      faults_.add({f.nodes.front(), Severity::error, Fault::Reach::node,
                   cat(faults_.at(node.line, node.column), f.text),
                   loop_error(f.type, f.text, ids(f.nodes), ids(f.ends))});
    }
    dag_.edges = links_of(graph_);
  }

  const Workflow& workflow_;
  const Catalog& catalog_;
  const GivenValues& values_;
  const std::uint64_t prompt_limit_;
  std::vector<NodeTypeRef> types_;
  LiteralReader literals_;
  BindAdvice advice_;
  boost::unordered_flat_map<std::string_view, NodeIndex> by_id_;
  Dag dag_;
  Graph graph_;
  BindFaults faults_;
  std::vector<NodeIndex> judged_;  // nodes with validators
  std::vector<bool> in_body_;      // of a loop; empty: there are none
};

}  // namespace

Bound bind(const Workflow& workflow, const Catalog& catalog, const GivenValues& given,
           std::uint64_t prompt_limit) {
  Bound bound = Binder(workflow, catalog, given, prompt_limit).bind();
  add_missing_models(workflow, catalog, bound.problems);
  put_lacking_first(bound.problems);
  return bound;
}

}  // namespace heddle::engine
