#include "engine/place/plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "engine/base/verify.h"
#include "engine/place/value_flow.h"
#include "engine/place/verify_plan.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

constexpr std::uint32_t kNone = 0xffffffff;

class Planner {
 public:
  Planner(const Graph& graph, const Plan& plan, const Inferred& inferred, const Topology& topology)
      : graph_(graph),
        plan_(plan),
        inferred_(inferred),
        topology_(topology),
        made_(graph.nodes.size(), 0) {
    first_value_.reserve(graph.nodes.size());
    values_.reserve(graph.nodes.size());
    const ValueHomes homes(graph, plan);
    for (NodeIndex n = 0; n < graph.nodes.size(); ++n) {
      const NodeType& type = *graph.nodes[n].type;
      const std::vector<ValueSpec>& outputs = inferred.nodes[n].outputs;
      first_value_.push_back(std::uint32_t(values_.size()));
      for (std::uint32_t o = 0; o < outputs.size(); ++o)
        values_.push_back({{n, o}, bytes_of(outputs[o], type.output(o).type), homes.of({n, o})});
    }
  }

  std::vector<Step> run() {
    steps_.reserve(plan_.order.size());
    for (const NodeIndex n : plan_.order) add_node(n);
    find_releases();
    return releases_.empty() ? std::move(steps_) : with_releases();
  }

 private:
  // A value where it is made, or where a transfer brings it.
  struct Stay {
    std::uint32_t value = 0;
    std::uint32_t place = 0;
    std::uint32_t next = kNone;  // stay of the same value, at a higher place
    std::uint32_t transfer = kNone;
    std::vector<std::uint32_t> readers;  // steps; who makes it is among them
    std::vector<std::uint32_t> holders;  // releases of values that hold the same tensors
  };
  struct PlannedValue {
    Source source;
    std::uint64_t bytes = 0;
    std::uint32_t home = 0;  // where its tensors are made
    std::uint32_t first_stay = kNone;
  };
  struct Release {
    std::uint32_t stay = 0;
    std::uint32_t at = 0;     // behind this step
    std::uint32_t level = 0;  // holders before what they hold
    std::uint32_t number = 0;
  };

  std::uint32_t value_of(const Source& source) const {
    return first_value_[source.node] + source.port;
  }

  // Made when it is not there. A value has few, so they are walked.
  Stay& stay_of(std::uint32_t value, std::uint32_t place) {
    std::uint32_t before = kNone, at = values_[value].first_stay;
    while (at != kNone && stays_[at].place < place) at = stays_[before = at].next;
    if (at != kNone && stays_[at].place == place) return stays_[at];
    (before == kNone ? values_[value].first_stay : stays_[before].next) =
        std::uint32_t(stays_.size());
    return stays_.emplace_back(Stay{value, place, at, kNone, {}, {}});
  }
  // What holds nothing is never released, so nobody has to know who reads it.
  void add_reader(std::uint32_t value, std::uint32_t place, std::uint32_t step) {
    if (values_[value].bytes != 0) stay_of(value, place).readers.push_back(step);
  }

  std::uint32_t transfer(std::uint32_t v, std::uint32_t to) {
    const PlannedValue& value = values_[v];
    std::uint32_t& step = stay_of(v, to).transfer;
    if (step != kNone) return step;
    const std::uint32_t added = step = std::uint32_t(steps_.size());
    const auto& [node, port] = value.source;
    steps_.push_back(
        {Step::Kind::transfer, node, port, value.home, to, value.bytes, {made_[node]}});
    add_reader(v, value.home, added);
    return added;
  }

  void add_node(NodeIndex n) {
    const Node& node = graph_.nodes[n];
    const std::uint32_t here = side_of(plan_.assignments[n]);
    std::vector<std::uint32_t> after;
    reads_.clear();
    for_each_link(node, [&](const Source& source, std::uint32_t flags) {
      const std::uint32_t v = value_of(source), home = values_[v].home;
      const std::uint32_t at =
          read_at(plan_.assignments[n], flags, home, values_[v].bytes, topology_);
      after.push_back(at == home ? made_[source.node] : transfer(v, at));
      reads_.emplace_back(v, at);
    });
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    const auto run = made_[n] = std::uint32_t(steps_.size());
    std::uint64_t allocated = inferred_.nodes[n].scratch_bytes;
    for (const auto& [value, place] : reads_) add_reader(value, place, run);
    for (std::uint32_t o = 0; o < node.type->output_count(); ++o) {
      const PlannedValue& output = values_[first_value_[n] + o];
      allocated = output.bytes == kUnknownBytes || allocated == kUnknownBytes
                      ? kUnknownBytes
                      : allocated + output.bytes;
      add_reader(first_value_[n] + o, output.home, run);
    }
    steps_.push_back({Step::Kind::run, n, 0, here, here, allocated, std::move(after)});
  }

  // From the last node to the first, so that a holder comes before what it holds.
  void find_releases() {
    for (auto n = plan_.order.rbegin(); n != plan_.order.rend(); ++n)
      for (std::uint32_t o = 0; o < graph_.nodes[*n].type->output_count(); ++o) {
        const std::uint32_t v = first_value_[*n] + o;
        for (std::uint32_t s = values_[v].first_stay; s != kNone; s = stays_[s].next) {
          Release release{s, *std::ranges::max_element(stays_[s].readers)};
          for (const std::uint32_t holder : stays_[s].holders) {
            release.at = std::max(release.at, releases_[holder].at);
            release.level = std::max(release.level, releases_[holder].level + 1);
          }
          const auto hold = [&](const Source& source, std::uint32_t flags) {
            const std::uint32_t held = value_of(source);
            const PlannedValue& value = values_[held];
            if (value.bytes == 0) return;
            const std::uint32_t at =
                read_at(plan_.assignments[*n], flags, value.home, value.bytes, topology_);
            stay_of(held, at).holders.push_back(std::uint32_t(releases_.size()));
          };
          if (stays_[s].place == values_[v].home)
            for_each_passed_on(graph_.nodes[*n], o, inferred_.nodes[*n].outputs[o].is_shared, hold);
          releases_.push_back(release);
        }
      }
  }

  // Behind each step come the releases of what it was the last to read: holders before what they
  // hold, else in the order in which the values were made.
  std::vector<Step> with_releases() {
    std::vector<std::uint32_t> behind(releases_.size());
    std::iota(behind.begin(), behind.end(), 0u);
    std::ranges::sort(behind, {}, [&](std::uint32_t r) {
      const Stay& stay = stays_[releases_[r].stay];
      const Source& source = values_[stay.value].source;
      return std::tuple(releases_[r].at, releases_[r].level, made_[source.node], source,
                        stay.place);
    });
    std::vector<Step> all;
    all.reserve(steps_.size() + behind.size());
    std::vector<std::uint32_t> number(steps_.size());
    auto next = behind.begin();
    for (std::uint32_t s = 0; s < steps_.size(); ++s) {
      for (std::uint32_t& a : steps_[s].after) a = number[a];
      number[s] = std::uint32_t(all.size());
      all.push_back(std::move(steps_[s]));
      for (; next != behind.end() && releases_[*next].at == s; ++next) {
        releases_[*next].number = std::uint32_t(all.size());
        all.push_back(release_step(releases_[*next], number));
      }
    }
    return all;
  }

  Step release_step(const Release& release, const std::vector<std::uint32_t>& number) const {
    const Stay& stay = stays_[release.stay];
    const PlannedValue& value = values_[stay.value];
    const auto& [node, port] = value.source;
    Step step{Step::Kind::release, node, port, stay.place, stay.place, value.bytes, {}};
    for (const std::uint32_t reader : stay.readers) step.after.push_back(number[reader]);
    for (const std::uint32_t holder : stay.holders) step.after.push_back(releases_[holder].number);
    std::ranges::sort(step.after);
    step.after.erase(std::unique(step.after.begin(), step.after.end()), step.after.end());
    return step;
  }

  const Graph& graph_;
  const Plan& plan_;
  const Inferred& inferred_;
  const Topology& topology_;
  std::vector<std::uint32_t> made_;         // by node: its run
  std::vector<std::uint32_t> first_value_;  // by node, in values_
  std::vector<PlannedValue> values_;
  std::vector<Stay> stays_;
  std::vector<Step> steps_;  // without the releases
  std::vector<Release> releases_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> reads_;  // of one node: values and places
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
  plan.assignments = std::move(placement.assignments);
  plan.homes = find_homes(graph, plan.assignments, plan.order, &inferred, &topology);
  plan.host_bytes.resize(graph.nodes.size());
  plan.device_bytes.resize(graph.nodes.size());
  for (const NodeIndex n : plan.order) {
    const Assignment& place = plan.assignments[n];
    plan.host_bytes[n] = host_bytes_of(inferred.nodes[n], place.on_host).all();
    if (!place.on_host && place.calls.empty() && inferred.nodes[n].calls.empty())
      plan.device_bytes[n] = bytes_of(inferred.nodes[n]).all();
  }
  plan.warnings = std::move(placement.warnings);
  plan.seconds = placement.seconds;
  plan.device_seconds = std::move(placement.device_seconds);
  plan.loads = std::move(placement.loads);
  plan.fidelity = placement.fidelity;
  return plan;
}

void add_steps(const Graph& graph, const Inferred& inferred, const Topology& topology, Plan& plan) {
  plan.steps = Planner(graph, plan, inferred, topology).run();
  if constexpr (kVerify) verify_plan(graph, plan, inferred, topology);
}

}  // namespace heddle::engine
