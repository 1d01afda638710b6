#include "engine/session/run_needs.h"

#include <algorithm>
#include <limits>
#include <map>

#include "engine/base/error.h"
#include "engine/graph/model.h"
#include "engine/place/call_steps.h"
#include "engine/place/value_flow.h"
#include "engine/program/session_spec.h"
#include "engine/program/workload.h"
#include "engine/session/call_needs.h"
#include "engine/session/memory_requirement.h"
#include "engine/session/staging_reserve.h"

namespace heddle::engine {

namespace {

constexpr std::uint64_t kEverything = std::uint64_t{1} << 60;

template <class Visit>
void for_each_model(const Value& value, Visit&& visit) {
  if (!value) return;
  if (const auto* model = std::get_if<std::shared_ptr<const Model>>(&value->content)) {
    visit(**model);
  } else if (const auto* list = std::get_if<List>(&value->content)) {
    for (const Value& item : list->items) for_each_model(item, visit);
  } else if (const auto* record = std::get_if<Record>(&value->content)) {
    for (const auto& [name, inner] : record->fields) for_each_model(inner, visit);
  }
}

// Counts in the order of the plan.
class Counter {
 public:
  Counter(const Graph& graph, const Plan& plan, const Inferred& inferred, const Topology& topology,
          Environment& environment)
      : graph_(graph),
        plan_(plan),
        inferred_(inferred),
        topology_(topology),
        environment_(environment),
        host_(std::uint32_t(environment.devices.size())),
        order_(plan.order.empty() ? graph.order : plan.order),
        live_(host_ + 1) {
    needs_.resize(host_ + 1);
    for (std::uint32_t m = 0; m <= host_; ++m) needs_[m].memory = m;
  }

  std::vector<MemoryNeed> count(std::span<const Source> wanted) {
    find_lifetimes(wanted);
    for (std::size_t at = 0; at < order_.size(); ++at) {
      begin(at);
      add_node(order_[at]);
      end(at);
    }
    return finish();
  }

 private:
  struct Change {
    std::uint32_t memory;
    std::uint64_t bytes;
  };
  struct Lifetime {
    std::size_t first = std::numeric_limits<std::size_t>::max(), last = 0;
    void cover(std::size_t at) {
      first = std::min(first, at);
      last = std::max(last, at);
    }
  };

  std::uint32_t memory_of(std::uint32_t side) const { return side == kHostSide ? host_ : side; }
  bool is_in_host(std::uint32_t memory) const {
    return memory != host_ && environment_.devices[memory].state->ledger().parent() != nullptr;
  }

  // Where each value is, and from which node of the order to which.
  void find_lifetimes(std::span<const Source> wanted) {
    begins_.resize(order_.size());
    ends_.resize(order_.size());
    std::vector<std::size_t> position(graph_.nodes.size(), order_.size());
    for (std::size_t at = 0; at < order_.size(); ++at) position[order_[at]] = at;
    const ValueHomes homes(graph_, plan_);
    std::map<Source, std::map<std::uint32_t, Lifetime>> values;
    for (std::size_t at = 0; at < order_.size(); ++at) {
      const NodeIndex n = order_[at];
      const Node& node = graph_.nodes[n];
      for (std::uint32_t port = 0; port < inferred_.nodes[n].outputs.size(); ++port) {
        const ValueSpec& value = inferred_.nodes[n].outputs[port];
        if (value.tensors.empty() || value.is_shared) continue;
        values[{n, port}][memory_of(homes.of({n, port}))].cover(at);
      }
      for_each_link(node, [&](const Source& source, std::uint32_t flags) {
        const auto found = values.find(source);
        if (found == values.end()) return;
        const std::uint32_t home = homes.of(source);
        const std::uint32_t place =
            read_at(plan_.assignments[n], flags, home, bytes(source), topology_);
        found->second[memory_of(home)].cover(at);
        found->second[memory_of(place)].cover(at);
      });
    }
    for (const Source& source : wanted)
      if (const auto found = values.find(source); found != values.end() && !order_.empty())
        found->second[memory_of(homes.of(source))].cover(order_.size() - 1);
    for (const auto& [source, places] : values)
      for (const auto& [memory, lifetime] : places) {
        begins_[lifetime.first].push_back({memory, bytes(source)});
        ends_[lifetime.last].push_back({memory, bytes(source)});
      }
  }
  std::uint64_t bytes(const Source& source) const {
    return bytes_of(inferred_.nodes[source.node].outputs[source.port],
                    graph_.nodes[source.node].type->output(source.port).type);
  }

  void begin(std::size_t at) {
    for (const Change& change : begins_[at]) live_[change.memory] += change.bytes;
    for (std::uint32_t m = 0; m <= host_; ++m) raise(m, 0, 0, 0);
  }
  void end(std::size_t at) {
    for (const Change& change : ends_[at]) live_[change.memory] -= change.bytes;
  }

  // A node takes so much beside the values that are there.
  void raise(std::uint32_t memory, std::uint64_t own, std::uint64_t weights, std::uint64_t least) {
    MemoryNeed& need = needs_[memory];
    const std::uint64_t values = live_[memory];
    need.own = std::max(need.own, values + own);
    need.all = std::max(need.all, values + own + weights);
    need.least = std::max(need.least, values + least);
  }

  void add_node(NodeIndex n) {
    const Assignment& assignment = plan_.assignments[n];
    const NodeSpec& spec = inferred_.nodes[n];
    const std::uint32_t home = assignment.on_host ? host_ : assignment.device;
    const std::uint64_t scratch = assignment.on_host ? 0 : spec.scratch_bytes;
    const bool tiles = !assignment.on_host && !spec.least_calls.empty();
    if (scratch > 0)
      raise(home, scratch, 0, tiles ? spec.least_scratch_bytes.value_or(scratch) : scratch);
    if (spec.host_scratch_bytes > 0) {
      const std::uint32_t there = is_in_host(home) ? home : host_;
      raise(there, spec.host_scratch_bytes, 0, spec.host_scratch_bytes);
    }
    if (assignment.on_host) return;
    if (spec.calls.empty() && assignment.calls.empty()) add_unknown_calls(n);
    for (std::size_t c = 0; c < assignment.calls.size(); ++c) {
      const PlacedCall& placed = assignment.calls[c];
      if (c < spec.calls.size() && placed.known) {
        add_call(n, spec.calls[c], placed);
      } else if (placed.of != nullptr) {
        for (const std::uint32_t d : placed.placement.devices) add_model(*placed.of, d);
      }
    }
  }

  // A model of which only the weights are known. What it works on besides is a guess: a run that
  // finds it too low beside others begins again alone.
  void add_model(const Model& model, std::uint32_t d) {
    try {
      const std::uint64_t weights = weight_load(model, topology_.devices[d].compute).weight_bytes;
      raise(d, weights / 4, weights, 0);
      models_[d][model.identity] = std::max(models_[d][model.identity], weights);
    } catch (const Error&) {
      // The run says what is wrong with it.
    }
  }

  // Of a node that reads models, without saying what it does with them.
  void add_unknown_calls(NodeIndex n) {
    const Node& node = graph_.nodes[n];
    if (node.type->has(HEDDLE_NODE_HOST) || node.type->has(HEDDLE_NODE_DESCRIBES)) return;
    for_each_link(node, [&](const Source& source, std::uint32_t flags) {
      if ((flags & HEDDLE_PORT_PASS) == 0)
        for_each_model(inferred_.nodes[source.node].outputs[source.port].value,
                       [&](const Model& model) { add_model(model, plan_.assignments[n].device); });
    });
  }

  void add_call(NodeIndex n, const CallSpec& call, const PlacedCall& placed) {
    const Model& model = *get_model(*call.model);
    const std::uint32_t home = home_of(placed, plan_.assignments[n].device);
    const bool tiles = !inferred_.nodes[n].least_calls.empty();  // then less will do
    try {
      for (const CallNeed& need :
           call_needs(call, placed.placement, home, topology_, environment_)) {
        const std::uint64_t beside = under_way(plan_.assignments[n], need.device);
        raise(need.device, beside + need.all - need.weights, need.weights,
              tiles ? 0 : beside + need.least);
        std::uint64_t& weights = models_[need.device][model.identity];
        weights = std::max(weights, need.weights);
        const std::uint64_t largest = largest_read(model);
        const std::uint64_t reading =
            is_in_host(need.device)
                ? staging_reserve(largest, need.device, topology_, environment_).min
                : largest;
        const std::uint32_t through = is_in_host(need.device) ? need.device : host_;
        raise(through, reading, 0, reading);
      }
    } catch (const Error&) {
      // The run says what is wrong with it.
      for (const std::uint32_t d : session_devices(placed.placement, home))
        raise(d, kEverything, 0, 0);
    }
  }

  std::vector<MemoryNeed> finish() {
    for (const auto& [memory, models] : models_)
      for (const auto& [model, bytes] : models) needs_[memory].models.emplace_back(model, bytes);
    MemoryNeed& host = needs_[host_];
    for (std::uint32_t d = 0; d < host_; ++d) {
      MemoryNeed& need = needs_[d];
      if (need.all == 0) continue;
      need.least = with_shared_chunks(need.least);
      const std::uint64_t more = with_shared_chunks(need.all) - need.all;
      need.all += more;
      need.own += more;
      if (const std::uint64_t budget = topology_.devices[d].budget; budget != 0)
        need.limit = budget;
      if (!is_in_host(d)) continue;
      const std::uint64_t most = budget_of(d, environment_);  // it never takes more of the host's
      host.least += std::min(need.least, most);
      host.all += std::min(need.all, most);
      host.own += std::min(need.own, most);
      host.models.insert(host.models.end(), need.models.begin(), need.models.end());
    }
    std::erase_if(needs_, [](const MemoryNeed& need) { return need.all == 0; });
    return std::move(needs_);
  }

  const Graph& graph_;
  const Plan& plan_;
  const Inferred& inferred_;
  const Topology& topology_;
  Environment& environment_;
  const std::uint32_t host_;
  const std::vector<NodeIndex>& order_;
  std::vector<std::vector<Change>> begins_, ends_;                    // by position in the order
  std::vector<std::uint64_t> live_;                                   // by memory
  std::vector<MemoryNeed> needs_;                                     // by memory
  std::map<std::uint32_t, std::map<Hash128, std::uint64_t>> models_;  // by memory
};

}  // namespace

std::vector<MemoryNeed> run_needs(const Graph& graph, const Plan& plan, const Inferred& inferred,
                                  std::span<const Source> wanted, const Topology& topology,
                                  Environment& environment) {
  return Counter(graph, plan, inferred, topology, environment).count(wanted);
}

namespace {
Ledger* ledger_of(std::uint32_t memory, Environment& environment) {
  return memory < environment.devices.size() ? &environment.devices[memory].state->ledger()
                                             : environment.host_ledger.get();
}
}  // namespace

std::uint64_t capacity_of(std::uint32_t memory, Environment& environment) {
  Ledger* const ledger = ledger_of(memory, environment);
  return ledger == nullptr ? Ledger::kNoLimit : ledger->most();
}

std::uint64_t budget_of(std::uint32_t memory, Environment& environment) {
  Ledger* const ledger = ledger_of(memory, environment);
  return ledger == nullptr ? Ledger::kNoLimit : ledger->budget();
}

}  // namespace heddle::engine
