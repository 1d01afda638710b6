#include "engine/plan/plan.h"

#include <algorithm>
#include <array>
#include <map>

#include "engine/tensor/shape.h"

namespace heddle::core {

namespace {

class Planner {
 public:
  Planner(const Graph& graph, const Placement& placement, const Inferred& inferred,
          const Topology& topology)
      : graph_(graph),
        placement_(placement),
        inferred_(inferred),
        topology_(topology),
        made_(graph.nodes.size(), 0),
        homes_(graph.nodes.size()) {}

  std::vector<Step> run(const std::vector<NodeIndex>& order) {
    for (const NodeIndex n : order) add_node(n);
    return with_releases(order);
  }

 private:
  // A value where it stands: what a transfer makes, and what is released.
  using Placed = std::pair<Source, std::uint32_t>;

  std::uint32_t place_of(NodeIndex n) const {
    return placement_.places[n].on_host ? kHostSide : placement_.places[n].device;
  }

  std::uint64_t bytes(const Source& source) const {
    return bytes_of(inferred_.nodes[source.node].outputs[source.port],
                    graph_.nodes[source.node].type->output(source.port).type);
  }

  std::uint32_t transfer(const Source& source, std::uint32_t to) {
    const auto [at, is_new] = sent_.try_emplace({source, to}, 0);
    if (!is_new) return at->second;
    const std::uint32_t from = homes_[source.node][source.port];
    steps_.push_back({Step::Kind::transfer,
                      source.node,
                      source.port,
                      0,
                      from,
                      to,
                      bytes(source),
                      {made_[source.node]}});
    at->second = std::uint32_t(steps_.size() - 1);
    readers_[{source, from}].push_back(at->second);
    return at->second;
  }

  void add_node(NodeIndex n) {
    const Node& node = graph_.nodes[n];
    const std::uint32_t here = place_of(n);
    std::vector<std::uint32_t> after;
    std::vector<Placed> reads;
    const auto read = [&](const Source& source, std::uint32_t flags) {
      const std::uint32_t from = homes_[source.node][source.port];
      const std::uint32_t to = (flags & HEDDLE_PORT_HOST) != 0 ? kHostSide : here;
      const bool stays = (flags & HEDDLE_PORT_PASS) != 0 || bytes(source) == 0 ||
                         topology_.link(from, to).kind == LinkFacts::Kind::same;
      after.push_back(stays ? made_[source.node] : transfer(source, to));
      reads.push_back({source, stays ? from : to});
    };
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
      if (const auto* link = std::get_if<Source>(&node.inputs[i]))
        read(*link, node.type->input(i).flags);
    for (const auto& [name, binding] : node.extra)
      if (const auto* link = std::get_if<Source>(&binding)) read(*link, 0);
    std::ranges::sort(after);
    after.erase(std::ranges::unique(after).begin(), after.end());
    std::uint64_t allocated = inferred_.nodes[n].scratch_bytes;
    for (std::uint32_t o = 0; o < node.type->output_count(); ++o) {
      homes_[n].push_back(home_of(n, o));
      const std::uint64_t output = bytes({n, o});
      allocated = output == kUnknownBytes || allocated == kUnknownBytes ? kUnknownBytes
                                                                        : allocated + output;
    }
    steps_.push_back({Step::Kind::run, n, 0, 0, here, here, allocated, std::move(after)});
    made_[n] = std::uint32_t(steps_.size() - 1);
    for (const Placed& placed : reads) readers_[placed].push_back(made_[n]);
    for (std::uint32_t o = 0; o < node.type->output_count(); ++o)
      readers_[{{n, o}, homes_[n][o]}].push_back(made_[n]);
  }

  // The input whose tensors an output hands on: of the same type, and looked at without its
  // tensors.
  const Source* passed_on(NodeIndex n, std::uint32_t output) const {
    const Node& node = graph_.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const heddle_port& port = node.type->input(i);
      if ((port.flags & HEDDLE_PORT_PASS) == 0 ||
          std::string_view(port.type) != node.type->output(output).type)
        continue;
      if (const auto* link = std::get_if<Source>(&node.inputs[i])) return link;
    }
    return nullptr;
  }
  std::uint32_t home_of(NodeIndex n, std::uint32_t output) const {
    const Source* passed = passed_on(n, output);
    return passed != nullptr ? homes_[passed->node][passed->port] : place_of(n);
  }

  // Behind each step come the releases of what it was the last to read.
  std::vector<Step> with_releases(const std::vector<NodeIndex>& order) {
    struct Release {
      Placed value;
      std::vector<std::uint32_t> after;  // steps, numbered without the releases
      std::vector<std::size_t>
          before;  // releases that come first: of values that hold the same tensors
      std::uint32_t at = 0, level = 0;
    };
    std::vector<Release> releases;
    std::map<Placed, std::size_t> index;
    for (auto n = order.rbegin(); n != order.rend(); ++n)
      for (std::uint32_t o = 0; o < homes_[*n].size(); ++o) {
        const Source value{*n, o};
        for (auto it = readers_.lower_bound({value, 0});
             it != readers_.end() && it->first.first == value; ++it) {
          if (bytes(value) == 0) continue;
          Release release{it->first, it->second, {}, *std::ranges::max_element(it->second)};
          const auto holders = holders_.find(it->first);
          for (const std::size_t holder :
               holders == holders_.end() ? std::vector<std::size_t>() : holders->second) {
            release.before.push_back(holder);
            release.at = std::max(release.at, releases[holder].at);
            release.level = std::max(release.level, releases[holder].level + 1);
          }
          if (const Source* passed = passed_on(*n, o);
              passed != nullptr && it->first.second == homes_[*n][o])
            holders_[{*passed, it->first.second}].push_back(releases.size());
          releases.push_back(std::move(release));
        }
      }
    // Behind a step: holders before what they hold, else in the order in which the values were
    // made.
    std::vector<std::vector<std::size_t>> behind(steps_.size());
    for (std::size_t r = 0; r < releases.size(); ++r) behind[releases[r].at].push_back(r);
    const auto key = [&](std::size_t r) {
      return std::tuple(releases[r].level, made_[releases[r].value.first.node], releases[r].value);
    };
    for (auto& list : behind) std::ranges::sort(list, {}, key);
    std::vector<Step> all;
    std::vector<std::uint32_t> number(steps_.size()), release_number(releases.size());
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      for (std::uint32_t& a : steps_[s].after) a = number[a];
      number[s] = std::uint32_t(all.size());
      all.push_back(std::move(steps_[s]));
      for (const std::size_t r : behind[s]) {
        const auto& [source, where] = releases[r].value;
        Step step{Step::Kind::release, source.node, source.port, 0, where, where,
                  bytes(source),       {}};
        for (const std::uint32_t a : releases[r].after) step.after.push_back(number[a]);
        for (const std::size_t b : releases[r].before) step.after.push_back(release_number[b]);
        std::ranges::sort(step.after);
        step.after.erase(std::ranges::unique(step.after).begin(), step.after.end());
        release_number[r] = std::uint32_t(all.size());
        all.push_back(std::move(step));
      }
    }
    return all;
  }

  const Graph& graph_;
  const Placement& placement_;
  const Inferred& inferred_;
  const Topology& topology_;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> made_;                // by node: its run
  std::vector<std::vector<std::uint32_t>> homes_;  // by node and output: where its tensors are made
  std::map<Placed, std::uint32_t> sent_;           // transfers
  std::map<Placed, std::vector<std::uint32_t>> readers_;
  std::map<Placed, std::vector<std::size_t>> holders_;
};

}  // namespace

std::uint64_t bytes_of(const ValueSpec& value, std::string_view port_type) {
  static constexpr std::array<std::string_view, 4> kScalars = {"INT", "FLOAT", "STRING", "BOOLEAN"};
  std::uint64_t bytes = 0;
  for (const auto& [path, info] : value.tensors) bytes += dense_bytes(info);
  if (bytes > 0 || value.value || std::ranges::find(kScalars, port_type) != kScalars.end())
    return bytes;
  return kUnknownBytes;
}

Plan make_plan(const Graph& graph, Placement placement, const Inferred& inferred,
               const Topology& topology) {
  Plan plan;
  plan.order = placement.order.empty() ? graph.order : std::move(placement.order);
  plan.steps = Planner(graph, placement, inferred, topology).run(plan.order);
  plan.places = std::move(placement.places);
  plan.warnings = std::move(placement.warnings);
  plan.seconds = placement.seconds;
  plan.device_seconds = std::move(placement.device_seconds);
  return plan;
}

}  // namespace heddle::core
