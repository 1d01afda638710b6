#include "engine/facade/passes.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/base/verify.h"
#include "engine/facade/inputs.h"
#include "engine/place/call_steps.h"
#include "engine/resources/device_recovery.h"
#include "engine/run/made_of.h"
#include "engine/session/memory_requirement.h"
#include "heddle/abi/device_ahead.h"

namespace heddle {

Budgets::Budgets(const EngineOptions& options, const std::vector<engine::DeviceHint>& hints)
    : options_(options) {
  for (const engine::DeviceHint& hint : hints)
    if (hint.budget_bytes) by_workflow_[hint.device] = *hint.budget_bytes;
}

bool Budgets::is_limited_by_caller(const engine::DeviceNames& device) const {
  return engine::find_for(options_.budgets, device) != nullptr;
}

engine::Topology Budgets::of(const engine::Environment& environment) const {
  engine::Topology topology = engine::topology_now(environment);
  for (const auto& [selector, bytes] : by_workflow_)
    if (std::ranges::none_of(topology.devices, [&, &name = selector](const auto& device) {
          return named_by(name, names_of(device)) != engine::NamedBy::nothing;
        }))
      throw engine::Error(engine::Code::not_found,
                          engine::cat("the workflow gives a budget to ", engine::quote(selector),
                                      ", which is not among the devices used: ",
                                      engine::all_device_names(topology)));
  for (engine::DeviceFacts& device : topology.devices) {
    const std::uint64_t* const bytes = engine::find_for(by_workflow_, names_of(device));
    if (bytes == nullptr || is_limited_by_caller(names_of(device))) continue;
    device.budget = device.budget == 0 ? *bytes : std::min(device.budget, *bytes);
  }
  return topology;
}

engine::Topology Budgets::given_only(engine::Topology topology) const {
  for (engine::DeviceFacts& device : topology.devices) {
    const engine::DeviceNames names = names_of(device);
    if (engine::find_for(by_workflow_, names) == nullptr && !is_limited_by_caller(names) &&
        !(device.host_visible && options_.host_budget))
      device.budget = 0;
  }
  return topology;
}

std::vector<engine::Ledger::Cap> Budgets::caps(const engine::Environment& environment) const {
  std::vector<engine::Ledger::Cap> caps;
  for (const engine::RunDevice& device : environment.devices) {
    const engine::DeviceNames& names = device.state->device().names();
    const std::uint64_t* const bytes = engine::find_for(by_workflow_, names);
    if (bytes != nullptr && !is_limited_by_caller(names))
      caps.emplace_back(device.state->ledger(), *bytes);
  }
  return caps;
}

namespace {

engine::Graph bind_nodes(const engine::Workflow& workflow, const engine::Catalog& catalog,
                         const engine::GivenValues& given, std::uint64_t prompt_limit,
                         bool partly) {
  engine::Bound bound = engine::bind(workflow, catalog, given, prompt_limit);
  std::vector<std::string> errors;
  std::size_t lacking = 0;
  for (const engine::Problem& p : bound.problems) {
    if (p.severity != engine::Problem::Severity::error) continue;
    errors.push_back(p.message);
    if (!p.lacks.empty()) ++lacking;
  }
  if (!errors.empty() && !(partly && bound.can_run))
    throw engine::Error(engine::Code::invalid_argument,
                        engine::join(engine::clip_lines(std::move(errors), lacking), "\n"));
  engine::take_device_inputs(bound.graph);
  return std::move(bound.graph);
}

// A plan says what a run would do, so both ask: a device that is well again is used again.
engine::Topology find_devices(engine::Environment& environment, const Budgets& budgets,
                              const Asked& asked) {
  engine::probe_degraded(environment);
  engine::Topology topology = budgets.of(environment);
  for (const auto& [d, why] : asked.avoid)
    if (std::string& reason = topology.devices[d].left_out; reason.empty()) reason = why;
  for (std::size_t d = 0; asked.by_budget && d < topology.devices.size(); ++d) {
    engine::DeviceFacts& device = topology.devices[d];
    device.memory_free =
        std::min(environment.devices[d].state->ledger().budget(), device.memory_total);
  }
  return topology;
}

// Of a run whose checkpoints another process may go on from, or that goes on from one.
std::vector<engine::Hash128> find_made_of(const engine::Graph& graph, const Asked& asked,
                                          engine::Environment& environment) {
  if (asked.hashes == nullptr) return {};
  std::vector<engine::Hash128> made_of = engine::made_of(graph, environment, *asked.hashes);
  if (asked.begun != nullptr) engine::check_made_of(*asked.begun, graph, made_of);
  return made_of;
}

// What the run has made before is there already.
void go_on(const Asked& asked, const std::vector<engine::Source>& wanted,
           const std::vector<engine::Hash128>& made_of, const engine::Topology& topology,
           engine::Graph& graph, engine::DiskCachedNodes& cached) {
  if (asked.saved.is_empty()) return;
  engine::keep_places(asked.saved, topology, graph);
  engine::take_saved(asked.saved, wanted, made_of, graph, cached);
}

engine::Described describe_nodes(const engine::Graph& graph, Describe how,
                                 engine::Environment& environment) {
  try {
    return engine::describe_models(graph, environment);
  } catch (const engine::RefusedValue&) {
    throw;  // the fault is the workflow's
  } catch (const engine::Error&) {
    // A run tells it as what it is, a node that failed.
    if (how == Describe::strictly) throw;
    engine::Described nothing;
    nothing.known.assign(graph.nodes.size(), false);
    return nothing;
  }
}

engine::Facts join_facts(const engine::Described& described,
                         const engine::DiskCachedNodes& disk_cached) {
  engine::Facts facts = described.facts;
  engine::add_facts(disk_cached, facts);
  return facts;
}

void check_prompts(const engine::Graph& graph, const engine::Facts& facts,
                   std::uint64_t prompt_limit) {
  const auto known = [&](const engine::Source& source) {
    const auto fact = facts.find(source);
    return fact == facts.end() ? nullptr : fact->second.get();
  };
  engine::check_known_prompts(graph, known, prompt_limit);
}

bool has_stages(const engine::Plan& plan) {
  return std::ranges::any_of(plan.assignments, [](const engine::Assignment& assignment) {
    return assignment.stages.has_value();
  });
}

// Stages are divided over devices where there is room for that, and are no reason to refuse what
// one device can do. has_room: throws out_of_memory where there is none; what it says is given,
// too.
template <class HasRoom>
std::pair<engine::Plan, bool> place_nodes(engine::PlaceRequest request,
                                          engine::PlaceRequest::Misfits misfits,
                                          const HasRoom& has_room) {
  request.misfits = misfits;
  const auto place = [&] {
    return engine::make_plan(request.graph, engine::place(request), request.inferred,
                             request.topology);
  };
  engine::Plan plan = place();
  try {
    const bool is_known = has_room(plan);
    return {std::move(plan), is_known};
  } catch (const engine::Error& error) {
    if (error.code() != engine::Code::out_of_memory || !has_stages(plan)) throw;
  }
  request.may_stage = false;
  plan = place();
  const bool is_known = has_room(plan);
  return {std::move(plan), is_known};
}

// Only what somebody gave is held against the least that a node needs. Placement goes by estimates;
// whether a budget is enough is counted, where that can be done. A plan shows what lacks where.
engine::Plan place_by_budgets(const engine::PlaceRequest& request, const Budgets& budgets,
                              const engine::Environment& environment, bool to_show) {
  using Misfits = engine::PlaceRequest::Misfits;
  const engine::Topology given = budgets.given_only(request.topology);
  const auto meets_budgets = [&](const engine::Plan& plan) {
    if (to_show && !has_stages(plan)) return true;
    return engine::meets_budgets(request.graph, plan, request.inferred, given, environment);
  };
  if (to_show) return place_nodes(request, Misfits::warned, meets_budgets).first;
  try {
    return place_nodes(request, Misfits::refused, meets_budgets).first;
  } catch (const engine::Error& error) {
    const bool has_budgets = std::ranges::any_of(
        given.devices, [](const engine::DeviceFacts& device) { return device.budget != 0; });
    if (error.code() != engine::Code::out_of_memory || !has_budgets) throw;
    auto [plan, is_known] = place_nodes(request, Misfits::warned, meets_budgets);
    if (!is_known) throw;
    return std::move(plan);
  }
}

void expect_work(const engine::Device& device) {
  if (device.desc().extension == nullptr) return;
  const auto* const ahead =
      static_cast<const heddle_device_ahead*>(device.desc().extension(HEDDLE_DEVICE_AHEAD));
  if (ahead != nullptr && ahead->expect_work != nullptr) ahead->expect_work(device.raw());
}

// Where there is but one card a model goes to it, so it need not wait until that is planned.
void expect_models(const engine::Inferred& inferred, const engine::Environment& environment) {
  const auto& devices = environment.devices;
  const auto is_card = [](const engine::RunDevice& device) {
    return !device.state->device().host_visible();
  };
  const bool has_models =
      std::ranges::any_of(inferred.nodes, [](const auto& node) { return !node.calls.empty(); });
  if (has_models && std::ranges::count_if(devices, is_card) == 1)
    expect_work(std::ranges::find_if(devices, is_card)->state->device());
}

void expect_planned(const engine::Plan& plan, const engine::Environment& environment) {
  for (const engine::Assignment& assignment : plan.assignments)
    if (!assignment.on_host && !assignment.calls.empty())
      for (const std::uint32_t device : assignment.devices)
        expect_work(environment.devices[device].state->device());
}

// "NODE.OUTPUT" of which nothing is known before the run.
std::vector<std::string> find_pending(const engine::Graph& graph, const engine::Inferred& inferred,
                                      const engine::Described& described) {
  std::vector<std::string> names;
  for (const engine::PendingOutput& pending : inferred.pending)
    if (!described.known[pending.node])
      names.push_back(engine::cat(graph.nodes[pending.node].id, ".", pending.output));
  return names;
}

// What a way that changes the rounding makes, and all that is made of it, is not kept for later
// processes: they would take it for what every way gives.
void keep_exact(const engine::Graph& graph, const engine::Plan& plan,
                engine::DiskCachedNodes& disk_cached) {
  if (disk_cached.empty()) return;
  std::vector<bool> rounds(graph.nodes.size(), false);
  for (const engine::NodeIndex n : graph.order) {
    for (const engine::PlacedCall& call : plan.assignments[n].calls)
      rounds[n] = rounds[n] || has(call.placement.parallel, engine::kRanksExchange);
    engine::for_each_binding(graph.nodes[n], [&](const engine::Binding& binding) {
      if (const auto* link = std::get_if<engine::Source>(&binding))
        rounds[n] = rounds[n] || rounds[link->node];
    });
  }
  std::erase_if(disk_cached, [&](const auto& cached) {
    return cached.second.values.empty() && rounds[cached.first];
  });
}

// What a plan cannot know: it is planned when it is.
void warn_of_growth(const engine::Graph& graph, engine::Plan& plan) {
  for (const engine::NodeIndex n : graph.order)
    if (graph.nodes[n].type->has(HEDDLE_NODE_EXPANDS))
      plan.warnings.push_back(
          engine::cat(graph.name_of(n),
                      " asks for more nodes when it runs. They are placed then, and nothing of "
                      "what they take is in this plan."));
}

}  // namespace

Ready prepare(const engine::Workflow& workflow, Asked asked, const EngineOptions& options,
              engine::Environment& environment) {
  const bool to_show = asked.how == Describe::strictly;
  const Budgets budgets(options, workflow.devices);

  engine::Graph graph =
      bind_nodes(workflow, *environment.catalog, asked.given, options.prompt_limit, asked.partly);
  std::vector<engine::Source> wanted = find_outputs(graph, workflow, asked.fetch);
  engine::Topology topology = find_devices(environment, budgets, asked);
  // What one run keeps on a device of others they have to load again.
  topology.lends_memory = !engine::is_beside_others(asked.device_load);
  std::vector<engine::Hash128> made_of = find_made_of(graph, asked, environment);
  engine::DiskCachedNodes disk_cached =
      engine::take_disk_cached(graph, wanted, topology, environment, asked.anew);
  go_on(asked, wanted, made_of, topology, graph, disk_cached);
  engine::Described described = describe_nodes(graph, asked.how, environment);
  const engine::Facts facts = join_facts(described, disk_cached);
  check_prompts(graph, facts, options.prompt_limit);
  engine::Inferred inferred =
      engine::infer(graph, environment.host, facts, environment.catalog.get());
  if (!to_show) expect_models(inferred, environment);
  const engine::PlaceRequest request{
      .graph = graph,
      .inferred = inferred,
      .topology = topology,
      .costs = environment.costs,
      .device_load = std::move(asked.device_load),
      .fidelity = asked.fidelity.value_or(options.fidelity) == Fidelity::rounding
                      ? engine::Fidelity::rounding
                      : engine::Fidelity::exact};
  engine::Plan plan = place_by_budgets(request, budgets, environment, to_show);
  if (!to_show) expect_planned(plan, environment);
  for (engine::Assignment& assignment : plan.assignments)
    assignment.borrows_memory = topology.lends_memory;
  engine::check_places(asked.saved, graph, plan, topology);
  if (asked.must_fit) engine::check_host_nodes(graph, plan, inferred, wanted, environment);
  keep_exact(graph, plan, disk_cached);
  plan.pending = find_pending(graph, inferred, described);
  if (to_show) warn_of_growth(graph, plan);
  if (to_show) engine::annotate_calls(inferred, engine::Prices(topology, environment.costs), plan);
  if (to_show || engine::kVerify) engine::add_steps(graph, inferred, topology, plan);

  return {std::move(graph),    std::move(plan),     std::move(described), std::move(disk_cached),
          std::move(inferred), std::move(topology), std::move(wanted),    std::move(made_of)};
}

}  // namespace heddle
