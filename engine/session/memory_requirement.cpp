#include "engine/session/memory_requirement.h"

#include <algorithm>
#include <map>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/graph/model.h"
#include "engine/graph/surely_run.h"
#include "engine/place/call_steps.h"
#include "engine/place/node_values.h"
#include "engine/session/call_needs.h"
#include "engine/session/staging_reserve.h"

namespace heddle::engine {

namespace {

bool is_in_host(std::uint32_t device, const Environment& environment) {
  return environment.devices[device].state->ledger().parent() != nullptr;
}

std::string reason_of(const SessionPlan& plan, std::uint32_t device_slot,
                      const std::string& model) {
  const SessionPlan::Needs& n = plan.needs[device_slot];
  const SessionPlan::Arenas& a = plan.arenas[device_slot];
  std::vector<std::string> parts;
  const auto add = [&](std::uint64_t bytes, const char* what) {
    if (bytes > 0) parts.push_back(cat(format_bytes(bytes), " for ", what));
  };
  add(n.inputs + n.outputs, "inputs and outputs");
  add(a.persistent_bytes + a.scratch_bytes, "activations");
  add(n.small_weights, "small weights");
  add(n.min_staging_ring, "a staging ring that the other weights pass through");
  return cat(model, ": ", join(parts, ", "));
}

}  // namespace

namespace {

// Of the node's values, `values` bytes with all that it works on: those beside its smallest tiles.
std::uint64_t values_in_tiles(const NodeSpec& spec, std::uint64_t values) {
  return spec.least_scratch_bytes ? values - spec.scratch_bytes + *spec.least_scratch_bytes
                                  : values;
}

// With what the node calls instead where there is no room; its own device does all of that.
void add_tiled(const NodeSpec& spec, std::uint64_t own, const Topology& topology,
               const Environment& environment, MemoryRequirement& need) {
  std::uint64_t least = own;
  std::string reason;
  for (const CallSpec& call : spec.least_calls) {
    const CallPlacement alone{ParallelMode::none, {need.device}, {}, {}, {}};
    const SessionPlan session = plan_with_room(call, alone, need.device, topology, environment);
    const std::uint64_t bytes = own + session.min_bytes(0);
    if (bytes <= least) continue;
    least = bytes;
    reason = cat(reason_of(session, 0, get_model(*call.model)->family), ", in tiles");
  }
  if (least >= need.min_bytes) return;
  need.tiled_bytes = least;
  need.tiled_reason = std::move(reason);
}

// What is on the device beside the calls: the node's values, rounds of stages under way, and what
// small pieces waste.
void add_shared(std::uint64_t values, std::uint64_t rounds, std::uint64_t& bytes,
                std::string& reason) {
  const std::uint64_t least = bytes;
  bytes = with_shared_chunks(least);
  const auto add = [&](std::uint64_t part, const char* what) {
    if (part > 0) reason += cat(reason.empty() ? "" : "; ", format_bytes(part), " for ", what);
  };
  add(values, "the node's values");
  add(rounds, "chunks under way");
  reason += cat("; ", format_bytes(bytes - least), " that small pieces share");
}

}  // namespace

MemoryRequirements memory_requirements(const Graph& graph, const Plan& plan,
                                       const Inferred& inferred, const Topology& topology,
                                       const Environment& environment) {
  MemoryRequirements all;
  for (const NodeIndex n : graph.order) {
    const Assignment& assignment = plan.assignments[n];
    if (assignment.on_host) continue;
    const NodeSpec& spec = inferred.nodes[n];
    const std::uint64_t values =
        values_of(graph.nodes[n], spec, inferred.nodes) +
        (is_in_host(assignment.device, environment) ? spec.host_scratch_bytes : 0);
    std::map<std::uint32_t, MemoryRequirement> by_device;
    if (values > 0)
      by_device[assignment.device] = {n, assignment.device, values, values, 0, values, "", 0, ""};
    for (std::size_t c = 0; c < std::min(spec.calls.size(), assignment.calls.size()); ++c) {
      try {
        const std::vector<std::uint32_t> devices =
            session_devices(assignment.calls[c].placement, home_of(assignment, c));
        const std::uint64_t reading = largest_read(*get_model(*spec.calls[c].model));
        const SessionPlan session = plan_with_room(spec.calls[c], assignment.calls[c].placement,
                                                   home_of(assignment, c), topology, environment);
        for (std::uint32_t p = 0; p < devices.size(); ++p) {
          MemoryRequirement& need = by_device[devices[p]];
          // What the node has of its own stays while it calls; of several calls the largest counts.
          const std::uint64_t own =
              (devices[p] == assignment.device ? values : 0) + under_way(assignment, devices[p]);
          const std::uint64_t least = own + session.min_bytes(p);
          const std::uint64_t whole = own + session.need_bytes(p);
          if (least > need.min_bytes || need.reason.empty())
            need = {n,
                    devices[p],
                    std::max(least, need.min_bytes),
                    need.all_bytes,
                    need.reading_bytes,
                    own,
                    reason_of(session, p, assignment.calls[c].report.model),
                    0,
                    ""};
          need.all_bytes = std::max(need.all_bytes, whole);
          need.reading_bytes = std::max(need.reading_bytes, reading);
        }
      } catch (const Error& error) {
        all.left_out.push_back(cat(graph.nodes[n].id, ": ", error.full()));
      }
    }
    if (!spec.least_calls.empty() && by_device.contains(assignment.device)) {
      try {
        add_tiled(spec, values_in_tiles(spec, values), topology, environment,
                  by_device[assignment.device]);
      } catch (const Error& error) {
        all.left_out.push_back(cat(graph.nodes[n].id, ": ", error.full()));
      }
    }
    for (auto& [d, need] : by_device) {
      const std::uint64_t own = d == assignment.device ? values : 0;
      need.all_bytes = with_shared_chunks(need.all_bytes);
      add_shared(own, under_way(assignment, d), need.min_bytes, need.reason);
      if (need.tiled_bytes > 0) {
        add_shared(values_in_tiles(spec, own), 0, need.tiled_bytes, need.tiled_reason);
      } else {
        need.tiled_bytes = need.min_bytes;
        need.tiled_reason = need.reason;
      }
      all.needs.push_back(std::move(need));
    }
  }
  return all;
}

namespace {

// Of a device's budget, beside what the node needs there: nothing where the host has more.
std::uint64_t read_within(const MemoryRequirement& need, const Topology& topology,
                          const Environment& environment) {
  if (!is_in_host(need.device, environment)) return 0;
  const std::uint64_t bytes =
      staging_reserve(need.reading_bytes, need.device, topology, environment).min;
  const std::uint64_t share = environment.devices[need.device].state->ledger().budget();
  return topology.devices[need.device].budget + bytes > share ? bytes : 0;
}

}  // namespace

std::vector<HostRequirement> host_requirements(const Graph& graph, const Plan& plan,
                                               const Inferred& inferred,
                                               const std::vector<MemoryRequirement>& needs,
                                               const Environment& environment) {
  const auto in_host = std::ranges::count_if(environment.devices, [](const RunDevice& device) {
    return device.state->ledger().parent() != nullptr;
  });
  if (in_host > 1) return {};
  std::map<NodeIndex, HostRequirement> by_node;
  for (const MemoryRequirement& need : needs) {
    HostRequirement& host = by_node[need.node];
    const bool there = is_in_host(need.device, environment);
    const auto with_reading = [&](std::uint64_t bytes) {
      return (there ? bytes : 0) + need.reading_bytes;
    };
    host = {need.node, std::max(host.min_bytes, with_reading(need.min_bytes)),
            std::max(host.tiled_bytes, with_reading(need.tiled_bytes)),
            std::max(host.reading_bytes, need.reading_bytes), 0};
  }
  for (const NodeIndex n : graph.order) {
    if (!plan.assignments[n].on_host) continue;
    const std::uint64_t values = values_of(graph.nodes[n], inferred.nodes[n], inferred.nodes);
    by_node[n] = {n, values, values, 0, values};
  }
  std::vector<HostRequirement> all;
  for (const auto& [node, host] : by_node)
    if (host.min_bytes > 0) all.push_back(host);
  return all;
}

void check_host_nodes(const Graph& graph, const Plan& plan, const Inferred& inferred,
                      std::span<const Source> wanted, const Environment& environment) {
  if (environment.host_ledger == nullptr) return;
  Ledger& host = *environment.host_ledger;
  const std::uint64_t budget = host.budget(), most = host.most();
  const std::vector<bool> runs = surely_run(graph, wanted);
  for (const NodeIndex n : graph.order) {
    if (!runs[n]) continue;
    const NodeBytes bytes = host_bytes_of(inferred.nodes[n], plan.assignments[n].on_host);
    if (bytes.all() <= most) continue;
    Error error(
        Code::out_of_memory,
        cat("out of memory on ", host.name(), ": its budget is ", format_bytes(budget), " (",
            budget, " bytes)",
            most < budget ? cat(", of which others leave ", format_bytes(most)) : "",
            ", and the node needs at least ", format_bytes(bytes.all()), " (", bytes.all(),
            " bytes): ", format_bytes(bytes.made), " for what it makes",
            bytes.scratch == 0 ? "" : cat(", ", format_bytes(bytes.scratch), " to work with"),
            ". Give the host a larger budget (--host-budget), or make less at a time: a smaller "
            "size or batch; heddle plan --min-memory tells what each node needs"));
    error.at(graph.name_of(n));
    throw error;
  }
}

bool meets_budgets(const Graph& graph, const Plan& plan, const Inferred& inferred,
                   const Topology& topology, const Environment& environment) {
  const auto has_budget = [&](std::uint32_t d) { return topology.devices[d].budget != 0; };
  if (std::ranges::none_of(plan.assignments, [&](const Assignment& assignment) {
        return !assignment.on_host && (has_budget(assignment.device) ||
                                       std::ranges::any_of(assignment.devices, has_budget));
      }))
    return true;
  const MemoryRequirements least =
      memory_requirements(graph, plan, inferred, topology, environment);
  for (const MemoryRequirement& need : least.needs) {
    const DeviceFacts& device = topology.devices[need.device];
    if (device.budget == 0) continue;
    const std::uint64_t reading = read_within(need, topology, environment);
    const std::uint64_t least = need.tiled_bytes + reading;
    if (device.budget >= least) continue;
    Error error(
        Code::out_of_memory,
        cat("out of memory on ", device.name, ": its budget is ", format_bytes(device.budget), " (",
            device.budget, " bytes), and the node needs at least ", format_bytes(least), " (",
            least, " bytes): ", need.tiled_reason,
            reading == 0 ? "" : cat("; ", format_bytes(reading), " for reading weights"),
            ". Give the device a larger budget, place the node elsewhere, or make less at "
            "a time; heddle plan --min-memory tells what each node needs"));
    error.at(graph.name_of(need.node));
    throw error;
  }
  return least.left_out.empty();
}

}  // namespace heddle::engine
