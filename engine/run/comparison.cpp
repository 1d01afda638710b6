#include "engine/run/comparison.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/explain/plan_text.h"

namespace heddle::engine {

namespace {

constexpr double kTolerance = 0.2;
constexpr double kWorthTelling = 0.1;  // seconds

bool differs(double fact, double least, double most) {
  return fact > most * (1 + kTolerance) || fact < least * (1 - kTolerance);
}

std::string line(std::string_view what, double planned, double load, double fact) {
  return cat(what, ": planned ", format_seconds(planned),
             load > 0 ? cat(", and ", format_seconds(load), " of loading") : "", ", took ",
             format_seconds(fact));
}

// A way that would have been faster, but did not fit: more memory, or one more device, would help.
std::string better_way(const Graph& graph, const Plan& plan) {
  for (NodeIndex n = 0; n < plan.assignments.size(); ++n)
    for (const PlacedCall& call : plan.assignments[n].calls)
      for (const Alternative& way : call.report.alternatives)
        if (!way.fits && !way.chosen && way.automatic && way.seconds > 0 &&
            way.seconds < call.seconds * (1 - kTolerance))
          return cat("advice: ", graph.nodes[n].id, " ", graph.nodes[n].type->name(),
                     " would take about ", format_seconds(way.seconds), " instead of ",
                     format_seconds(call.seconds), " ", way.name, " if that had the memory");
  return "";
}

}  // namespace

PlannedTime planned_time(const Plan& plan, NodeIndex node) {
  PlannedTime time;
  if (node >= plan.assignments.size()) return time;  // it came while the run was under way
  for (const PlacedCall& call : plan.assignments[node].calls) {
    if (call.seconds <= 0) return {};  // one that is not known makes the sum unknown
    time.seconds += call.seconds;
    time.load_seconds += call.load_seconds;
  }
  if (const auto& stages = plan.assignments[node].stages) time.seconds = stages->seconds;
  return time;
}

std::vector<std::string> prediction_against_fact(const Graph& graph, const Plan& plan,
                                                 std::span<const NodeTiming> timings,
                                                 double seconds, const Costs& costs) {
  std::vector<std::string> lines;
  bool is_whole =
      true;  // a run that took something from the cache was shorter than planned for a good reason
  for (const NodeTiming& timing : timings) {
    is_whole = is_whole && !timing.cached;
    const PlannedTime planned = planned_time(plan, timing.node);
    if (timing.cached || planned.seconds <= 0 ||
        std::max(timing.seconds, planned.seconds) < kWorthTelling)
      continue;
    const Node& node = graph.nodes[timing.node];
    if (differs(timing.seconds, planned.seconds, planned.seconds + planned.load_seconds))
      lines.push_back(line(cat(node.id, " ", node.type->name()), planned.seconds,
                           planned.load_seconds, timing.seconds));
  }
  if (is_whole && plan.seconds > 0 && std::max(seconds, plan.seconds) >= kWorthTelling &&
      differs(seconds, plan.seconds, plan.seconds))
    lines.push_back(line("in all", plan.seconds, 0, seconds));
  if (!lines.empty() && costs.devices.empty()) {
    lines.push_back(
        "advice: measure this machine once with `heddle tune`, and plans go by its figures instead "
        "of guesses");
  } else if (std::string better = better_way(graph, plan); !better.empty()) {
    lines.push_back(std::move(better));
  }
  return lines;
}

}  // namespace heddle::engine
