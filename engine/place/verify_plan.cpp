#include "engine/place/verify_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/place/value_flow.h"

namespace heddle::engine {

namespace {

using PlacedValue = std::pair<Source, std::uint32_t>;

class PlanVerifier {
 public:
  PlanVerifier(const Graph& graph, const Plan& plan, const Inferred& inferred,
               const Topology& topology)
      : graph_(graph), plan_(plan), inferred_(inferred), topology_(topology) {}

  std::vector<std::string> run() {
    find_homes();
    find_closures();
    if (!faults_.empty()) return faults_;  // what follows goes by the order
    read_steps();
    for (const NodeIndex n : graph_.order) check_run(n);
    for (const auto& [value, step] : sent_) check_transfer(value, step);
    check_releases();
    return faults_;
  }

  std::vector<std::string> run_memory() {
    find_homes();
    check_room();
    check_calls();
    return faults_;
  }

 private:
  template <class... Parts>
  void fault(const Parts&... parts) {
    faults_.push_back(cat(parts...));
  }
  std::string name(const PlacedValue& value) const {
    return cat(graph_.nodes[value.first.node].id, ".", value.first.port, " on ",
               value.second == kHostSide ? "host" : topology_.devices[value.second].name);
  }

  std::uint64_t bytes(const Source& source) const {
    return bytes_of(inferred_.nodes[source.node].outputs[source.port],
                    graph_.nodes[source.node].type->output(source.port).type);
  }
  std::uint32_t place_of(NodeIndex n) const {
    return plan_.assignments[n].on_host ? kHostSide : plan_.assignments[n].device;
  }
  bool shares_memory(std::uint32_t a, std::uint32_t b) const {
    return a == b || topology_.link(a, b).kind == LinkFacts::Kind::same;
  }

  // A node that looks at a record without its tensors hands them on in an output of the same type,
  // and in one that shares its inputs' tensors; of what it reads, in one that shares and is of the
  // same type, from where it reads it.
  std::vector<PlacedValue> handed_on(NodeIndex n, std::uint32_t output) const {
    const Node& node = graph_.nodes[n];
    std::vector<PlacedValue> held;
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      if (link == nullptr || bytes(*link) == 0) continue;
      const bool is_shared = inferred_.nodes[n].outputs[output].is_shared;
      const bool is_same =
          std::string_view(node.type->input(i).type) == node.type->output(output).type;
      const std::uint32_t home = homes_.at(*link), flags = node.type->input(i).flags;
      if ((flags & HEDDLE_PORT_PASS) != 0) {
        if (is_shared || is_same) held.emplace_back(*link, home);
      } else if (is_shared && is_same) {
        held.emplace_back(*link, read_place(n, flags, home));
      }
    }
    return held;
  }
  std::uint32_t read_place(NodeIndex n, std::uint32_t flags, std::uint32_t home) const {
    const std::uint32_t wanted = (flags & HEDDLE_PORT_HOST) != 0 ? kHostSide : place_of(n);
    return shares_memory(home, wanted) ? home : wanted;
  }

  void find_homes() {
    for (const NodeIndex n : graph_.order)
      for (std::uint32_t o = 0; o < graph_.nodes[n].type->output_count(); ++o) {
        const auto from = handed_on(n, o);
        homes_[{n, o}] = from.empty() ? place_of(n) : from.front().second;
      }
  }

  // Everything that is done before a step, by what it and those wait for.
  void find_closures() {
    before_.resize(plan_.steps.size());
    for (std::size_t i = 0; i < plan_.steps.size(); ++i)
      for (const std::uint32_t a : plan_.steps[i].after) {
        if (a >= i) {
          fault("step ", i, " waits for step ", a, ", which does not come before it");
          continue;
        }
        before_[i].insert(a);
        before_[i].insert(before_[a].begin(), before_[a].end());
      }
  }

  void read_steps() {
    for (std::uint32_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      if (step.kind == Step::Kind::run) {
        if (!runs_.try_emplace(step.node, i).second)
          fault(graph_.nodes[step.node].id, " runs twice");
        if (step.to != place_of(step.node))
          fault(graph_.nodes[step.node].id, " does not run where it was placed");
        continue;
      }
      if (!homes_.contains({step.node, step.port})) {
        fault("step ", i, " is about a value that nobody makes");
        continue;
      }
      const PlacedValue value{{step.node, step.port}, step.to};
      auto& known = step.kind == Step::Kind::transfer ? sent_ : released_;
      if (!known.try_emplace(value, i).second)
        fault(name(value), step.kind == Step::Kind::transfer ? " is sent" : " is released",
              " twice");
    }
    for (const NodeIndex n : graph_.order)
      if (!runs_.contains(n)) fault(graph_.nodes[n].id, " never runs");
  }

  void need(std::uint32_t step, std::uint32_t earlier, const std::string& what) {
    if (!before_[step].contains(earlier)) fault("step ", step, " does not wait for ", what);
  }

  void check_run(NodeIndex n) {
    const auto at = runs_.find(n);
    if (at == runs_.end()) return;
    const Node& node = graph_.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
      check_read(n, at->second, node.inputs[i], node.type->input(i).flags);
    const std::uint32_t flags = extra_flags(node);
    for (const auto& [name, binding] : node.extra) check_read(n, at->second, binding, flags);
  }

  void check_read(NodeIndex n, std::uint32_t run, const Binding& binding, std::uint32_t flags) {
    const auto* link = std::get_if<Source>(&binding);
    if (link == nullptr || !runs_.contains(link->node)) return;
    const std::uint32_t home = homes_.at(*link);
    const std::uint32_t at = read_place(n, flags, home);
    need(run, runs_.at(link->node), cat("the run of ", graph_.nodes[link->node].id));
    PlacedValue read{*link, home};
    if ((flags & HEDDLE_PORT_PASS) == 0 && bytes(*link) != 0 && at != home) {
      read.second = at;
      const auto sent = sent_.find(read);
      if (sent == sent_.end())
        fault(graph_.nodes[n].id, " reads ", name(read), ", where it never is");
      else
        need(run, sent->second, cat("the transfer of ", name(read)));
    }
    readers_[read].push_back(run);
  }

  void check_transfer(const PlacedValue& value, std::uint32_t index) {
    const Step& step = plan_.steps[index];
    const std::uint32_t home = homes_.at(value.first);
    if (step.from != home) fault(name(value), " is sent from where it is not");
    if (shares_memory(home, step.to)) fault(name(value), " is sent to where it is");
    if (runs_.contains(value.first.node))
      need(index, runs_.at(value.first.node),
           cat("the run of ", graph_.nodes[value.first.node].id));
    if (step.bytes != bytes(value.first))
      fault(name(value), " is sent with a wrong number of bytes");
    readers_[{value.first, home}].push_back(index);
  }

  void check_releases() {
    std::set<PlacedValue> wanted;
    for (const auto& [value, home] : homes_)
      if (bytes(value) != 0) wanted.insert({value, home});
    for (const auto& [value, step] : sent_) wanted.insert(value);
    for (const PlacedValue& value : wanted) {
      const auto at = released_.find(value);
      if (at == released_.end()) {
        fault(name(value), " is never released");
        continue;
      }
      if (runs_.contains(value.first.node))
        need(at->second, runs_.at(value.first.node), cat("the run that made ", name(value)));
      for (const std::uint32_t reader : readers_[value])
        need(at->second, reader, cat("step ", reader, ", which reads ", name(value)));
      if (value.second != homes_.at(value.first)) continue;
      for (const PlacedValue& held : handed_on(value.first.node, value.first.port))
        if (const auto later = released_.find(held); later != released_.end())
          need(later->second, at->second, cat("the release of ", name(value)));
    }
    for (const auto& [value, step] : released_)
      if (!wanted.contains(value)) fault(name(value), " is released where it never is");
  }

  // In the order of the steps: more may never be alive than there is room for.
  void check_room() {
    std::map<std::uint32_t, std::uint64_t> used;
    const auto take = [&](std::uint32_t device, std::uint64_t count, std::size_t step) {
      if (device == kHostSide || count == kUnknownBytes) return;
      used[device] += count;
      const std::uint64_t available = usable_bytes(topology_.devices[device]);
      if (used[device] > available && available > 0)
        fault("step ", step, ": ", used[device], " bytes are alive on ",
              topology_.devices[device].name, ", which has room for ", available);
    };
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      if (step.kind == Step::Kind::transfer) take(step.to, step.bytes, i);
      if (step.kind == Step::Kind::run)
        for (std::uint32_t o = 0; o < graph_.nodes[step.node].type->output_count(); ++o)
          if (handed_on(step.node, o).empty()) take(step.to, bytes({step.node, o}), i);
      if (step.kind != Step::Kind::release || step.to == kHostSide) continue;
      if (step.bytes != kUnknownBytes && handed_on(step.node, step.port).empty())
        used[step.to] -= step.bytes;
      else if (step.bytes != kUnknownBytes && step.to != homes_.at({step.node, step.port}))
        used[step.to] -= step.bytes;
    }
  }

  void check_calls() {
    for (const NodeIndex n : graph_.order)
      for (const PlacedCall& call : plan_.assignments[n].calls)
        for (const Alternative& way : call.report.alternatives) {
          if (!way.chosen) continue;
          for (const DeviceNeed& need : way.needs)
            if (need.wanted_bytes > usable_bytes(topology_.devices[need.device]) && call.fits)
              fault(graph_.nodes[n].id, ": its call wants ", need.wanted_bytes, " bytes of ",
                    topology_.devices[need.device].name);
        }
  }

  const Graph& graph_;
  const Plan& plan_;
  const Inferred& inferred_;
  const Topology& topology_;
  std::vector<std::string> faults_;
  std::map<Source, std::uint32_t> homes_;
  std::vector<std::set<std::uint32_t>> before_;  // by step
  std::map<NodeIndex, std::uint32_t> runs_;
  std::map<PlacedValue, std::uint32_t> sent_, released_;
  std::map<PlacedValue, std::vector<std::uint32_t>> readers_;
};

}  // namespace

std::vector<std::string> plan_faults(const Graph& graph, const Plan& plan, const Inferred& inferred,
                                     const Topology& topology) {
  return PlanVerifier(graph, plan, inferred, topology).run();
}

std::vector<std::string> memory_faults(const Graph& graph, const Plan& plan,
                                       const Inferred& inferred, const Topology& topology) {
  return PlanVerifier(graph, plan, inferred, topology).run_memory();
}

void verify_plan(const Graph& graph, const Plan& plan, const Inferred& inferred,
                 const Topology& topology) {
  constexpr std::size_t kMostSteps = 1'000;
  if (plan.steps.size() > kMostSteps) return;
  const std::vector<std::string> faults = plan_faults(graph, plan, inferred, topology);
  if (!faults.empty())
    throw Error(Code::internal, cat("the plan of the workflow is wrong: ", faults.front(),
                                    ". This is an error in heddle: please report it"));
}

}  // namespace heddle::engine
