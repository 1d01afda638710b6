#include "engine/facade/passes.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/base/verify.h"
#include "engine/facade/inputs.h"
#include "engine/place/call_steps.h"
#include "engine/resources/device_recovery.h"
#include "engine/session/memory_requirement.h"

namespace heddle {

bool Budgets::is_limited_by_caller(const std::string& device, const std::string& kind) const {
  return options_.budgets.contains(device) || options_.budgets.contains(kind);
}

core::Topology Budgets::of(const core::Environment& environment) const {
  core::Topology topology = core::topology_now(environment);
  for (const core::DeviceHint& hint : hints_) {
    if (!hint.budget_bytes) continue;
    const auto device = std::ranges::find(topology.devices, hint.device, &core::DeviceFacts::name);
    if (device == topology.devices.end())
      throw core::Error(core::Code::not_found, core::cat("the workflow gives a budget to ", core::quote(hint.device), ", which is not among the devices used: ",
                                                         core::all_device_names(topology)));
    if (is_limited_by_caller(device->name, device->kind)) continue;
    device->budget = device->budget == 0 ? *hint.budget_bytes : std::min(device->budget, *hint.budget_bytes);
  }
  return topology;
}

core::Topology Budgets::given_only(core::Topology topology) const {
  for (core::DeviceFacts& device : topology.devices) {
    const bool by_workflow = std::ranges::any_of(hints_, [&](const core::DeviceHint& hint) { return hint.budget_bytes && hint.device == device.name; });
    if (!by_workflow && !is_limited_by_caller(device.name, device.kind) && !(device.host_visible && options_.host_budget)) device.budget = 0;
  }
  return topology;
}

std::vector<core::Ledger::Cap> Budgets::caps(const core::Environment& environment) const {
  std::vector<core::Ledger::Cap> caps;
  for (const core::DeviceHint& hint : hints_)
    for (const core::RunDevice& device : environment.devices) {
      const core::Device& of = device.state->device();
      if (hint.budget_bytes && of.name() == hint.device && !is_limited_by_caller(of.name(), of.kind()))
        caps.emplace_back(device.state->ledger(), *hint.budget_bytes);
    }
  return caps;
}

namespace {

core::Graph bind_nodes(const core::Workflow& workflow, const core::Catalog& catalog, const core::GivenValues& given, std::uint64_t prompt_limit) {
  core::Bound bound = core::bind(workflow, catalog, {}, given, prompt_limit);
  std::vector<std::string> errors;
  for (const core::Problem& p : bound.problems)
    if (p.severity == core::Problem::Severity::error) errors.push_back(p.message);
  if (!errors.empty()) throw core::Error(core::Code::invalid_argument, core::join(core::clip_lines(std::move(errors)), "\n"));
  core::take_device_inputs(bound.graph);
  return std::move(bound.graph);
}

// A plan says what a run would do, so both ask: a device that is well again is used again.
core::Topology find_devices(core::Environment& environment, const Budgets& budgets) {
  core::probe_degraded(environment);
  return budgets.of(environment);
}

core::Described describe_nodes(const core::Graph& graph, Describe how, core::Environment& environment) {
  try {
    return core::describe_models(graph, environment);
  } catch (const core::RefusedValue&) {
    throw;  // the fault is the workflow's
  } catch (const core::Error&) {
    // A run tells it as what it is, a node that failed.
    if (how == Describe::strictly) throw;
    core::Described nothing;
    nothing.known.assign(graph.nodes.size(), false);
    return nothing;
  }
}

core::Facts join_facts(const core::Described& described, const core::Kept& kept) {
  core::Facts facts = described.facts;
  core::add_facts(kept, facts);
  return facts;
}

void check_prompts(const core::Graph& graph, const core::Facts& facts, std::uint64_t prompt_limit) {
  const auto known = [&](const core::Source& source) {
    const auto fact = facts.find(source);
    return fact == facts.end() ? nullptr : fact->second.get();
  };
  core::check_known_prompts(graph, known, prompt_limit);
}

core::Plan place_nodes(core::PlaceRequest request, core::PlaceRequest::Misfits misfits) {
  request.misfits = misfits;
  return core::make_plan(request.graph, core::place(request), request.inferred);
}

// A plan shows what lacks where.
core::Plan place_to_show(const core::PlaceRequest& request) { return place_nodes(request, core::PlaceRequest::Misfits::told); }

// Only what somebody gave is held against the least that a node needs. Placement goes by estimates; whether a budget is enough is
// counted, where that can be done.
core::Plan place_to_run(const core::PlaceRequest& request, const Budgets& budgets, const core::Environment& environment) {
  const core::Topology given = budgets.given_only(request.topology);
  const auto meets_budgets = [&](const core::Plan& plan) { return core::meets_budgets(request.graph, plan, request.inferred, given, environment); };
  try {
    core::Plan plan = place_nodes(request, core::PlaceRequest::Misfits::refused);
    meets_budgets(plan);
    return plan;
  } catch (const core::Error& error) {
    const bool has_budgets = std::ranges::any_of(given.devices, [](const core::DeviceFacts& device) { return device.budget != 0; });
    if (error.code() != core::Code::out_of_memory || !has_budgets) throw;
    core::Plan plan = place_nodes(request, core::PlaceRequest::Misfits::told);
    if (!meets_budgets(plan)) throw;
    return plan;
  }
}

// "NODE.OUTPUT" of which nothing is known before the run.
std::vector<std::string> find_pending(const core::Graph& graph, const core::Inferred& inferred, const core::Described& described) {
  std::vector<std::string> names;
  for (const core::PendingOutput& pending : inferred.pending)
    if (!described.known[pending.node]) names.push_back(core::cat(graph.nodes[pending.node].id, ".", pending.output));
  return names;
}

}  // namespace

Ready prepare(const core::Workflow& workflow, Asked asked, const EngineOptions& options, core::Environment& environment) {
  const bool to_show = asked.how == Describe::strictly;
  const Budgets budgets(options, workflow.devices);

  core::Graph graph = bind_nodes(workflow, *environment.catalog, asked.given, options.prompt_limit);
  const std::vector<core::Source> wanted = find_outputs(graph, workflow, asked.keep);
  const core::Topology topology = find_devices(environment, budgets);
  core::Kept kept = core::take_kept(graph, wanted, topology, environment);
  core::Described described = describe_nodes(graph, asked.how, environment);
  const core::Facts facts = join_facts(described, kept);
  check_prompts(graph, facts, options.prompt_limit);
  core::Inferred inferred = core::infer(graph, environment.host, facts, environment.catalog.get());
  const core::PlaceRequest request{.graph = graph, .inferred = inferred, .topology = topology, .costs = environment.costs, .crowd = std::move(asked.crowd)};
  core::Plan plan = to_show ? place_to_show(request) : place_to_run(request, budgets, environment);
  if (asked.must_fit) core::check_host_nodes(graph, plan, inferred, wanted, environment);
  plan.pending = find_pending(graph, inferred, described);
  if (to_show) core::tell_calls(inferred, core::Prices(topology, environment.costs), plan);
  if (to_show || core::kVerify) core::add_steps(graph, inferred, topology, plan);

  return {std::move(graph), std::move(plan), std::move(described), std::move(kept), to_show ? std::move(inferred) : core::Inferred{}};
}

}  // namespace heddle
