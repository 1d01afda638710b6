#include "engine/place/place.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/place/parallel_options.h"
#include "engine/place/place_call.h"
#include "engine/place/value_flow.h"

namespace heddle::engine {

namespace {

constexpr double kStreamingGain = 0.98;  // of the time without it: what streaming has to gain
constexpr double kMixingGain = 0.98;     // of the time on devices that are alike

// Devices that compute equal bytes at equal speed, in the order of the topology.
std::vector<std::vector<std::uint32_t>> equal_devices(const Topology& topology) {
  std::vector<std::vector<std::uint32_t>> classes;
  for (std::uint32_t d = 0; d < topology.devices.size(); ++d) {
    const DeviceFacts& device = topology.devices[d];
    if (!device.left_out.empty()) continue;
    const auto same = std::ranges::find_if(classes, [&](const auto& c) {
      const DeviceFacts& first = topology.devices[c.front()];
      return first.kind == device.kind && first.model == device.model &&
             first.compute == device.compute;
    });
    if (same != classes.end())
      same->push_back(d);
    else
      classes.push_back({d});
  }
  return classes;
}

// Classes whose devices differ in model only: they compute the same ops in the same types.
std::vector<std::vector<std::uint32_t>> pools_of(
    const Topology& topology, const std::vector<std::vector<std::uint32_t>>& classes) {
  std::vector<std::vector<std::uint32_t>> pools;  // of classes
  const auto first = [&](std::uint32_t c) -> const DeviceFacts& {
    return topology.devices[classes[c].front()];
  };
  for (std::uint32_t c = 0; c < classes.size(); ++c) {
    const auto same = std::ranges::find_if(pools, [&](const auto& pool) {
      return first(pool.front()).kind == first(c).kind &&
             first(pool.front()).compute == first(c).compute;
    });
    if (same != pools.end())
      same->push_back(c);
    else
      pools.push_back({c});
  }
  std::erase_if(pools, [](const auto& pool) { return pool.size() < 2; });
  return pools;
}

class Placer {
 public:
  Placer(const PlaceRequest& request, const Prices& prices)
      : request_(request), graph_(request.graph), prices_(prices), options_(request, prices) {}

  Placement run() {
    std::vector<std::vector<std::uint32_t>> classes = equal_devices(request_.topology);
    if (classes.empty())
      throw Error(Code::io, cat("no device is left to run on: ",
                                join(left_out_texts(request_.topology), "; ")));
    std::optional<Try> best, crowded;
    // Whether memory was enough for every weight to stay.
    const auto consider = [&](const std::vector<std::uint32_t>& candidates,
                              double gain = 1 - 1e-9) {
      Try attempt = with(candidates);
      if (attempt.misfit != kGraphInputs) {
        if (!refused_) {
          refused_ = shortage(attempt);
          crowded = std::move(attempt);
        }
        return false;
      }
      const bool is_roomy = !attempt.streams && !attempt.tiles;
      if (!best || attempt.compared_seconds < best->compared_seconds * gain)
        best = std::move(attempt);
      return is_roomy;
    };
    std::vector<bool> is_roomy;
    for (const auto& candidates : classes) is_roomy.push_back(consider(candidates));
    for (const std::vector<std::uint32_t>& pool : pools_of(request_.topology, classes)) {
      if (std::ranges::all_of(pool, [&](std::uint32_t c) { return is_roomy[c]; })) continue;
      std::vector<std::uint32_t> together;
      for (const std::uint32_t c : pool)
        together.insert(together.end(), classes[c].begin(), classes[c].end());
      std::ranges::sort(together);
      consider(together, 1 + 1e-9);  // where nothing gains, it tells what was compared
    }
    // Nodes on several kinds of device at once: their results are not those of any one device.
    if (classes.size() > 1 && (refused_ || request_.fidelity == Fidelity::rounding)) {
      std::vector<std::uint32_t> every;
      for (std::uint32_t d = 0; d < request_.topology.devices.size(); ++d)
        if (request_.topology.devices[d].left_out.empty()) every.push_back(d);
      consider(every, best ? kMixingGain : 1.0);
    }
    if (best) return finish(std::move(*best));
    if (request_.misfits == PlaceRequest::Misfits::refused) throw *refused_;
    crowded->schedule = schedule(crowded->tasks, prices_);
    settle(*crowded);
    Placement placement = finish(std::move(*crowded));
    placement.warnings.push_back(refused_->full());
    return placement;
  }

 private:
  struct Try {
    // By position in the graph's order; what they are as tasks stands in `tasks`.
    std::vector<std::vector<NodeOption>> options;
    TaskGraph tasks;
    TaskSchedule schedule;
    NodeIndex misfit = kGraphInputs;  // a node that has no room anywhere
    bool streams = false;             // weights of a call that was chosen
    bool tiles = false;               // a node, because its calls have no room anywhere
    // What attempts are compared by. Loading counts as among the ways of each call, and weights
    // that pass have to gain what they have to gain there.
    double compared_seconds = 0;
  };

  Try with(const std::vector<std::uint32_t>& candidates) {
    Try attempt;
    attempt.options.reserve(graph_.order.size());
    attempt.tasks.tasks.reserve(graph_.order.size());
    std::vector<std::uint32_t> first_value(graph_.nodes.size(), 0);
    for (const NodeIndex n : graph_.order) {
      std::vector<NodeOption> options = options_.of(n, candidates);
      if (std::ranges::any_of(options, &NodeOption::fits))
        std::erase_if(options, [](const NodeOption& o) { return !o.fits; });
      else if (can_tile(n))
        attempt.tiles = true;
      else
        attempt.misfit = std::min(attempt.misfit, n);
      Task& task = attempt.tasks.tasks.emplace_back();
      add_inputs(n, first_value, task);
      task.options.reserve(options.size());
      for (NodeOption& option : options) task.options.push_back(std::move(option.task));
      first_value[n] = std::uint32_t(attempt.tasks.values.size());
      add_values(n, attempt.tasks);
      attempt.options.push_back(std::move(options));
    }
    attempt.tasks.load_count = options_.load_count();
    attempt.tasks.busy_seconds = request_.device_load.busy_seconds;
    if (attempt.misfit != kGraphInputs) return attempt;
    attempt.schedule = schedule(attempt.tasks, prices_);
    settle(attempt);
    return attempt;
  }

  // From here on the tasks that were chosen say what loading takes.
  void settle(Try& attempt) const {
    bool is_other = false;
    for (std::size_t t = 0; t < attempt.options.size(); ++t) {
      const NodeOption& taken = attempt.options[t][attempt.schedule.options[t]];
      TaskOption& task = attempt.tasks.tasks[t].options[attempt.schedule.options[t]];
      for (std::size_t l = 0; l < task.loads.size(); ++l) {
        is_other = is_other || task.loads[l].second != taken.load_seconds[l];
        task.loads[l].second = taken.load_seconds[l];
      }
      attempt.streams =
          attempt.streams || std::ranges::any_of(taken.assignment.calls, &PlacedCall::streamed);
    }
    attempt.compared_seconds =
        attempt.streams ? attempt.schedule.seconds / kStreamingGain : attempt.schedule.seconds;
    if (is_other)
      attempt.schedule.seconds =
          simulate(attempt.tasks, attempt.schedule.order, attempt.schedule.options, prices_);
  }

  bool can_tile(NodeIndex n) const { return !request_.inferred.nodes[n].least_calls.empty(); }

  static constexpr std::uint32_t kNoValue = 0xffffffff;

  void add_inputs(NodeIndex n, const std::vector<std::uint32_t>& first_value, Task& task) const {
    const Node& node = graph_.nodes[n];
    const auto read = [&](const Binding& binding, std::uint32_t flags) {
      if (const auto* link = std::get_if<Source>(&binding))
        task.inputs.push_back({first_value[link->node] + link->port,
                               (flags & HEDDLE_PORT_HOST) != 0, (flags & HEDDLE_PORT_PASS) != 0});
    };
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
      read(node.inputs[i], node.type->input(i).flags);
    for (const auto& [name, binding] : node.extra) read(binding, extra_flags(node));
  }

  // Of the node that is the last task.
  void add_values(NodeIndex n, TaskGraph& tasks) const {
    const Node& node = graph_.nodes[n];
    const Task& task = tasks.tasks.back();
    for (std::uint32_t o = 0; o < node.type->output_count(); ++o) {
      const std::uint64_t bytes =
          bytes_of(request_.inferred.nodes[n].outputs[o], node.type->output(o).type);
      TaskValue value{std::uint32_t(tasks.tasks.size() - 1), bytes == kUnknownBytes ? 0 : bytes,
                      kNoValue};
      std::size_t linked = 0;
      for (std::uint32_t i = 0; i < node.inputs.size() && value.held == kNoValue; ++i) {
        if (!std::holds_alternative<Source>(node.inputs[i])) continue;
        const bool passed = task.inputs[linked].stays &&
                            std::string_view(node.type->input(i).type) == node.type->output(o).type;
        if (passed) value.held = task.inputs[linked].value;
        ++linked;
      }
      tasks.values.push_back(value);
    }
  }

  Error shortage(const Try& attempt) const {
    const NodeIndex n = attempt.misfit;
    const std::size_t t = std::size_t(std::ranges::find(graph_.order, n) - graph_.order.begin());
    std::vector<std::string> ways;
    std::string family;
    for (const NodeOption& option : attempt.options[t])
      for (std::size_t c = 0; c < option.assignment.calls.size(); ++c) {
        if (option.assignment.calls[c].fits) continue;
        family = option.assignment.calls[c].of->family;
        for (const Alternative& a : option.assignment.calls[c].report.alternatives) {
          const std::string way =
              cat(a.name, ": ", a.fits ? a.note : shortage_text(a, request_.topology));
          if ((a.automatic || a.fits) && std::ranges::find(ways, way) == ways.end())
            ways.push_back(way);
        }
      }
    Error error(Code::out_of_memory,
                cat("the model ", quote(family), " has no room on ",
                    all_device_names(request_.topology), ": ", join(ways, "; "),
                    ". Use more devices, a smaller type, or a smaller picture or batch."));
    error.at(graph_.name_of(n));
    return error;
  }

  Placement finish(Try attempt) {
    Placement placement;
    placement.assignments.resize(graph_.nodes.size());
    placement.device_seconds.assign(request_.topology.devices.size(), 0);
    std::vector<std::string> tiling;
    for (std::size_t t = 0; t < graph_.order.size(); ++t) {
      const std::uint32_t choice = attempt.schedule.options[t];
      const TaskOption& taken = attempt.tasks.tasks[t].options[choice];
      for (const std::uint32_t d : taken.devices) placement.device_seconds[d] += taken.seconds;
      add_loads(attempt.options[t][choice].planned_loads, placement.loads);
      if (const NodeOption& option = attempt.options[t][choice];
          !option.fits && can_tile(graph_.order[t]))
        tiling.push_back(
            cat(graph_.name_of(graph_.order[t]), " has no room on ",
                request_.topology.devices[option.assignment.device].name,
                " for what it calls as a whole: it calls it in tiles, which changes the result a "
                "little. Use a device with more memory, or a smaller picture or batch."));
      placement.assignments[graph_.order[t]] = std::move(attempt.options[t][choice].assignment);
    }
    placement.order.reserve(graph_.order.size());
    for (const std::uint32_t t : attempt.schedule.order) placement.order.push_back(graph_.order[t]);
    placement.seconds = attempt.schedule.seconds;
    placement.fidelity = request_.fidelity;
    placement.warnings = left_out_texts(request_.topology);
    for (const std::string& warning : options_.warnings()) placement.warnings.push_back(warning);
    for (std::string& warning : tiling) placement.warnings.push_back(std::move(warning));
    for (const NodeIndex n : graph_.order) give_reason(n, placement);
    return placement;
  }

  static void add_loads(const std::vector<PlannedLoad>& more, std::vector<PlannedLoad>& loads) {
    for (const PlannedLoad& load : more) {
      const auto same = std::ranges::find_if(loads, [&](const PlannedLoad& known) {
        return known.model == load.model && known.device == load.device && known.bytes > 0;
      });
      if (same == loads.end() || load.bytes == 0)
        loads.push_back(load);
      else if (load.bytes > same->bytes)
        *same = load;
    }
  }

  void give_reason(NodeIndex n, Placement& placement) const {
    Assignment& to = placement.assignments[n];
    if (to.on_host || (!to.reason.empty() && !to.reason.starts_with(';'))) return;
    std::string reason;
    if (request_.topology.devices.size() == 1) {
      reason = "the only device";
    } else {
      for_each_binding(graph_.nodes[n], [&](const Binding& b) {
        const auto* link = std::get_if<Source>(&b);
        if (link == nullptr || !reason.empty()) return;
        const Assignment& producer = placement.assignments[link->node];
        if (!producer.on_host && producer.device == to.device)
          reason = cat("where ", graph_.nodes[link->node].id, " is");
      });
      if (reason.empty()) reason = to.device == 0 ? "first device" : "done sooner there";
    }
    to.reason.insert(0, reason);
  }

  const PlaceRequest& request_;
  const Graph& graph_;
  const Prices& prices_;
  Options options_;
  std::optional<Error> refused_;
};

}  // namespace

Placement place(const PlaceRequest& request) {
  const Prices prices(request.topology, request.costs);
  return Placer(request, prices).run();
}

void take_device_inputs(Graph& graph) {
  // One that hands on what others have loaded says itself what its device means.
  const auto hands_on = [](const NodeType& type) {
    bool passes = false;
    for (std::uint32_t i = 0; i < type.input_count(); ++i)
      passes = passes || (type.input(i).flags & HEDDLE_PORT_PASS) != 0;
    return passes;
  };
  for (Node& node : graph.nodes) {
    if (!node.type->has(HEDDLE_NODE_DESCRIBES) || !node.hints.device.empty()) continue;
    if (hands_on(*node.type)) continue;
    const auto port = node.type->find_input("device");
    if (!port) continue;
    const auto* value = std::get_if<Value>(&node.inputs[*port]);
    const auto* text =
        value == nullptr || !*value ? nullptr : std::get_if<std::string>(&(*value)->content);
    if (text != nullptr && !text->empty() && *text != "default") node.hints.device = *text;
  }
}

Placement place_on_first(const Graph& graph) {
  Placement placement;
  placement.assignments.resize(graph.nodes.size());
  for (const NodeIndex n : graph.order)
    placement.assignments[n] = {
        0, {0}, graph.nodes[n].type->has(HEDDLE_NODE_HOST), "first device", {}};
  return placement;
}

}  // namespace heddle::engine
