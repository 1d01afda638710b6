#include "engine/place/call_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/graph/model.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

namespace {

std::string value_name(const Graph& graph, const Source& source) {
  if (source.node == kGraphInputs) return graph.inputs[source.port].name;
  const Node& node = graph.nodes[source.node];
  return node.type->output_count() == 1 ? node.id
                                        : cat(node.id, ".", node.type->output(source.port).name);
}

void annotate(const Graph& graph, const SessionPlan& session,
              const std::vector<std::uint32_t>& devices, CallReport& report) {
  std::set<std::uint32_t> exchanged;
  std::map<std::string, CallExchange> exchanges;
  std::map<std::string, std::set<NodeIndex>> blocks;
  for (const PlannedCollective& collective : session.collectives) {
    const std::string_view op = op_name(collective.op);
    const std::string name(op.substr(0, op.find('/')));
    CallExchange& exchange = exchanges[name];
    exchange.op = name;
    ++exchange.count;
    blocks[name].insert(collective.node);
    for (const std::uint32_t t : collective.transfers)
      if (exchanged.insert(t).second) exchange.bytes += session.transfers[t].bytes;
  }
  for (auto& [name, exchange] : exchanges) {
    exchange.blocks = std::uint32_t(blocks[name].size());
    report.exchanges.push_back(std::move(exchange));
  }
  std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, CallTransfer> sums;
  for (std::size_t phase = 0; phase < session.phases.size(); ++phase)
    for (const SessionAction& action : session.phases[phase]) {
      if (action.kind != SessionAction::Kind::transfer || exchanged.contains(action.index))
        continue;
      const PlannedTransfer& t = session.transfers[action.index];
      CallTransfer& sum = sums[{phase == 2, t.from, t.to}];
      sum.once = phase != 2;
      sum.from = devices[t.from];
      sum.to = devices[t.to];
      sum.bytes += t.bytes;
      ++sum.count;
      const std::string name = value_name(graph, t.value);
      if (std::ranges::find(sum.values, name) == sum.values.end()) sum.values.push_back(name);
    }
  for (auto& [key, sum] : sums) report.transfers.push_back(std::move(sum));
  for (std::uint32_t p = 0; p < devices.size(); ++p) {
    const SessionPlan::Needs& needs = session.needs[p];
    const std::uint64_t staging_ring = session.arenas[p].staging_ring_bytes;
    if (staging_ring > 0)
      report.streams.push_back({devices[p], needs.resident_weights, staging_ring,
                                needs.step_page_bytes, needs.donor_page_bytes,
                                needs.unpinned_page_bytes, needs.once_page_bytes});
  }
}

}  // namespace

SessionSetup session_setup(const CallSpec& call, const CallPlacement& placement, std::uint32_t home,
                           const Prices& prices) {
  const std::vector<std::uint32_t> devices = session_devices(placement, home);
  const Topology& topology = prices.topology();
  SessionSetup setup{call, placement};
  setup.home = std::uint32_t(std::ranges::find(devices, home) - devices.begin());
  for (const std::uint32_t d : devices) {
    const DeviceFacts& device = topology.devices[d];
    setup.devices.push_back({device.name, device.compute, device.host_visible,
                             session_budget(device), prices.rates(d),
                             device.captures_other_streams});
  }
  setup.are_peers = [&prices, devices](std::uint32_t a, std::uint32_t b) {
    return prices.link(devices[a], devices[b]).kind == LinkFacts::Kind::peer;
  };
  setup.donors = session_donors(prices, devices);
  setup.pinned_bytes = topology.pinned_bytes;
  setup.layout = [&topology, devices](std::uint32_t device, const WeightSource& source) {
    return plain_layout(source, topology.devices[devices[device]].compute);
  };
  return setup;
}

std::uint64_t session_budget(const DeviceFacts& device) {
  return has_limit(device) ? usable_bytes(device) : kNoLimit;
}

std::optional<Donor> session_donor(const Prices& prices, std::uint32_t device,
                                   const std::vector<std::uint32_t>& users,
                                   std::uint64_t free_bytes) {
  const Topology& topology = prices.topology();
  const DeviceFacts& facts = topology.devices[device];
  if (!topology.lends_memory || std::ranges::find(users, device) != users.end()) return {};
  if (facts.host_visible || !facts.left_out.empty() || !has_limit(facts)) return {};
  Donor donor{facts.name, free_bytes / 2, {}};
  for (const std::uint32_t user : users) {
    const DeviceFacts& to = topology.devices[user];
    const bool direct = prices.link(device, user).is_direct() && to.kind == facts.kind &&
                        to.model == facts.model && to.compute == facts.compute;
    donor.copies.push_back(direct ? prices.copy_rate(device, user) : CopyRate());
  }
  return std::ranges::any_of(donor.copies, &CopyRate::is_there) ? std::optional(std::move(donor))
                                                                : std::nullopt;
}

std::vector<Donor> session_donors(const Prices& prices, const std::vector<std::uint32_t>& users) {
  std::vector<Donor> donors;
  const Topology& topology = prices.topology();
  for (std::uint32_t d = 0; d < topology.devices.size(); ++d)
    if (auto donor = session_donor(prices, d, users, usable_bytes(topology.devices[d])))
      donors.push_back(std::move(*donor));
  return donors;
}

void annotate_calls(const Inferred& inferred, const Prices& prices, Plan& plan) {
  for (NodeIndex n = 0; n < plan.assignments.size(); ++n) {
    Assignment& assignment = plan.assignments[n];
    for (std::size_t c = 0; c < assignment.calls.size(); ++c) {
      PlacedCall& call = assignment.calls[c];
      const std::vector<std::uint32_t> devices =
          session_devices(call.placement, home_of(call, assignment.device));
      if (!call.known || c >= inferred.nodes[n].calls.size()) continue;
      if (devices.size() < 2 && !call.streamed) continue;
      try {
        const SessionSpec spec = session_spec(session_setup(
            inferred.nodes[n].calls[c], call.placement, home_of(call, assignment.device), prices));
        const SessionPlan session =
            plan_session(*call.of->graph, spec,
                         [](std::uint32_t, const heddle_op_call&) { return ChosenKernel(); });
        annotate(*call.of->graph, session, devices, call.report);
      } catch (const Error& error) {
        log(Level::debug, cat("what crosses in a call of ", call.report.model,
                              " cannot be told: ", error.full()));
      }
    }
  }
}

}  // namespace heddle::engine
