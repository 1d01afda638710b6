#include "engine/explain/plan_text.h"

#include <cmath>
#include <cstdio>

#include "engine/base/text.h"
#include "engine/place/value_flow.h"

namespace heddle::engine {

namespace {

// Ids, titles and names come from others: none of them may begin a line of its own.
template <typename... Args>
std::string line_of(const Args&... args) {
  return printable(cat(args...)) + "\n";
}

std::string output_of(const Graph& graph, const Step& step) {
  return output_name(graph, {step.node, step.port});
}

// ", from the first rows of 5.IMAGE on"; "": none.
std::string parts_text(const Graph& graph, const std::vector<Source>& parts) {
  std::vector<std::string> names;
  for (const Source& source : parts) names.push_back(output_name(graph, source));
  return names.empty() ? "" : cat(", from the first rows of ", join(names, ", "), " on");
}

// "13.1 of 16.0 GiB on gpu:0"
std::string needs_of(const Alternative& way, const Topology& topology) {
  std::vector<std::string> parts;
  for (const DeviceNeed& need : way.needs) {
    const bool limited = topology.devices[need.device].budget != 0 ||
                         topology.devices[need.device].memory_total != 0;
    parts.push_back(cat(format_bytes(need.wanted_bytes),
                        limited ? cat(" of ", format_bytes(need.there_bytes)) : "", " on ",
                        device_name(need.device, topology)));
  }
  return join(parts, ", ");
}

// The first few of what may be many.
std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 4;
  if (names.size() <= kShown) return join(names, ", ");
  const std::vector<std::string> shown(names.begin(), names.begin() + kShown);
  return cat(join(shown, ", "), " and ", names.size() - kShown, " more");
}

std::string alternative_text(const Alternative& way, const Topology& topology) {
  return line_of("      ", way.chosen ? "* " : "- ", way.name, ": ", format_seconds(way.seconds),
                 " after ", format_seconds(way.load_seconds), " of loading; ",
                 needs_of(way, topology), way.fits ? "" : ": does not fit",
                 way.note.empty() ? "" : cat("; ", way.note));
}

// What a divided call does on its devices: a line for each device, for each pair that one sends to
// the other, for each kind of collective.
std::string inside_text(const CallReport& call, const Topology& topology) {
  const std::string begin = "        ";
  const auto every = [&](bool once) {
    return call.step_count == 1 || once ? "once " : "each step ";
  };
  std::string text;
  for (const CallPart& part : call.parts)
    text += line_of(begin, device_name(part.device, topology), " ", part.what, ": ",
                    format_bytes(part.weight_bytes), " of weights");
  for (const CallTransfer& t : call.transfers)
    text += line_of(
        begin, every(t.once), device_name(t.from, topology), " -> ", device_name(t.to, topology),
        " ", t.bytes == 0 ? "shared memory" : format_bytes(t.bytes), ": ", first_of(t.values));
  for (const CallStream& s : call.streams)
    text += line_of(
        begin, device_name(s.device, topology), " ", format_bytes(s.resident_bytes),
        " of weights stay; ", format_bytes(s.step_bytes), " each step",
        s.donor_bytes == 0 ? ""
                           : cat(" (", format_bytes(s.donor_bytes), " of them from idle devices)"),
        s.unpinned_bytes == 0 ? ""
                              : cat(" (", format_bytes(s.unpinned_bytes), " of them not pinned)"),
        s.once_bytes == 0 ? "" : cat(" and ", format_bytes(s.once_bytes), " once"),
        " from host memory through a staging ring of ", format_bytes(s.staging_ring_bytes));
  for (const CallExchange& e : call.exchanges)
    text += line_of(begin, every(false), e.count, " ", e.op, " in ", e.blocks,
                    e.blocks == 1 ? " block, " : " blocks, ", format_bytes(e.bytes));
  if (!call.whole.empty()) text += line_of(begin, "whole: ", join(call.whole, ", "));
  return text;
}

std::string call_text(const PlacedCall& call, const Topology& topology) {
  const CallReport& report = call.report;
  std::string text = cat(call.known ? "    calls " : "    may call ", report.model);
  if (report.step_count > 0)
    text += cat(", ", report.step_count, report.step_count == 1 ? " step" : " steps", " of ",
                report.set_count, report.set_count == 1 ? " branch" : " branches");
  text += cat(": ",
              parallel_name(call.placement.parallel) == "none"
                  ? "on"
                  : cat(parallel_name(call.placement.parallel), " over"),
              " ", device_names(call.placement.devices, topology), " (", report.reason, ")");
  text = printable(text) + "\n";
  if (!report.why.empty()) text += line_of("        ", "why: ", report.why);
  text += inside_text(report, topology);
  for (const Alternative& way : report.alternatives) text += alternative_text(way, topology);
  if (report.rounding)
    text += line_of("        faster with --fidelity rounding: ", report.rounding->name, " takes ",
                    format_seconds(report.rounding->seconds), ", ",
                    std::lround(100 * (1 - report.rounding->seconds / call.seconds)), "% less");
  return text;
}

// "    21 chunks in a pipeline over fake:1, fake:0: stages 1 to 4 on fake:1, ...", or of chunks
// that are dealt out "21 chunks in turn over fake:1, fake:0: 11 on fake:1, ..."
std::string stages_text(const PlacedStages& stages, const Topology& topology) {
  std::vector<std::string> ranges;
  for (std::uint32_t i = 0; stages.deals_rounds() && i < stages.devices.size(); ++i) {
    const std::uint32_t d = stages.devices[i];
    ranges.push_back(cat(stages.rounds_of(i), " on ", device_name(d, topology), " (",
                         format_bytes(stages.under_way_bytes[d]), " under way)"));
  }
  for (std::size_t begin = 0, end = 0; begin < stages.of_stage.size(); begin = end) {
    while (end < stages.of_stage.size() && stages.of_stage[end] == stages.of_stage[begin]) ++end;
    const std::uint32_t d = stages.devices[stages.of_stage[begin]];
    const std::uint64_t bytes = stages.under_way_bytes[d];
    ranges.push_back(
        cat(end - begin == 1 ? cat("stage ", end) : cat("stages ", begin + 1, " to ", end), " on ",
            device_name(d, topology), " (", format_bytes(bytes), " under way)"));
  }
  return line_of("    ", stages.rounds,
                 stages.deals_rounds() ? " chunks in turn over " : " chunks in a pipeline over ",
                 device_names(stages.devices, topology), ": ", join(ranges, ", "), "; ",
                 format_seconds(stages.seconds), " where one device takes ",
                 format_seconds(stages.alone_seconds));
}

}  // namespace

std::string output_name(const Graph& graph, const Source& source) {
  const Node& node = graph.nodes[source.node];
  return cat(node.id, ".", node.type->output(source.port).name);
}

std::string format_seconds(double seconds) {
  if (seconds <= 0) return "0 s";
  static constexpr struct {
    double unit;
    const char* name;
  } kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
  for (const auto& [unit, name] : kUnits) {
    const double count = seconds / unit;
    // 999.6 ms has three digits as 1.00 s.
    if (count < 0.9995 && unit > 1e-6) continue;
    char digits[32];
    const int decimals = count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2;
    std::snprintf(digits, sizeof digits, "%.*f", decimals, count);
    return cat(std::string_view(digits), " ", std::string_view(name));
  }
  return "";
}

std::string step_bytes_text(std::uint64_t bytes) {
  return bytes == kUnknownBytes ? "unknown size" : format_bytes(bytes);
}

std::string plan_text(const Graph& graph, const Plan& plan, const Topology& topology) {
  std::string text;
  std::uint32_t runs = 0, transfers = 0;
  std::uint64_t moved = 0;
  for (const Step& step : plan.steps) {
    if (step.kind == Step::Kind::run) ++runs;
    if (step.kind != Step::Kind::transfer) continue;
    ++transfers;
    if (step.bytes != kUnknownBytes) moved += step.bytes;
  }
  text +=
      cat(runs, " runs, ", transfers, " transfers",
          moved > 0 ? cat(" (", format_bytes(moved), ")") : "", " on ", all_device_names(topology),
          plan.seconds > 0 ? cat(", about ", format_seconds(plan.seconds)) : "", "\n");
  const std::vector<std::vector<Source>> parts = read_in_parts(graph, plan.assignments);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const Node& node = graph.nodes[step.node];
    std::string line;
    switch (step.kind) {
      case Step::Kind::run:
        line = cat(i, " run ", node.id, " ", node.type->name(),
                   node.title.empty() ? "" : cat(" \"", node.title, "\""), " on ",
                   device_name(step.to, topology), " (", plan.assignments[step.node].reason, ")");
        break;
      case Step::Kind::transfer:
        line = cat(i, " transfer ", output_of(graph, step), " ", device_name(step.from, topology),
                   " -> ", device_name(step.to, topology), " ", step_bytes_text(step.bytes));
        break;
      case Step::Kind::release:
        line = cat(i, " release ", output_of(graph, step), " on ", device_name(step.to, topology),
                   " ", step_bytes_text(step.bytes));
        break;
    }
    if (!step.after.empty()) line += cat(" after ", join(step.after, ","));
    if (step.kind == Step::Kind::run) line += parts_text(graph, parts[step.node]);
    text += line_of(line);
    if (step.kind != Step::Kind::run) continue;
    const Assignment& assignment = plan.assignments[step.node];
    if (assignment.stages)
      text += stages_text(*assignment.stages, topology);
    else if (!assignment.undivided.empty())
      text += line_of("    chunks one after another on ", device_name(assignment.device, topology),
                      ": ", assignment.undivided);
    for (const PlacedCall& call : assignment.calls) text += call_text(call, topology);
  }
  for (const std::string& pending : plan.pending) text += line_of("pending: ", pending);
  for (const std::string& warning : plan.warnings) text += line_of("warning: ", warning);
  return text;
}

}  // namespace heddle::engine
