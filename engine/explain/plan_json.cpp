#include "engine/explain/plan_text.h"

#include "engine/base/text.h"
#include "engine/place/value_flow.h"

namespace heddle::engine {

namespace {

Json devices_json(const std::vector<std::uint32_t>& devices, const Topology& topology) {
  Json list = Json::array();
  for (const std::uint32_t d : devices) list.push(device_name(d, topology));
  return list;
}

Json strings_json(const std::vector<std::string>& strings) {
  Json list = Json::array();
  for (const std::string& s : strings) list.push(s);
  return list;
}

Json alternative_json(const Alternative& way, const Topology& topology) {
  Json needs = Json::array();
  for (const DeviceNeed& need : way.needs)
    needs.push(std::move(Json::object()
                             .set("device", device_name(need.device, topology))
                             .set("bytes_wanted", need.wanted_bytes)
                             .set("bytes_there", need.there_bytes)));
  Json json = Json::object();
  json.set("name", way.name)
      .set("chosen", way.chosen)
      .set("fits", way.fits)
      .set("seconds", way.seconds)
      .set("load_seconds", way.load_seconds);
  json.set("needs", std::move(needs));
  if (way.rounds) json.set("changes_rounding", true);
  if (!way.note.empty()) json.set("note", way.note);
  return json;
}

// What a divided call does on its devices.
void add_inside(const CallReport& call, const Topology& topology, Json& json) {
  Json parts = Json::array(), transfers = Json::array(), exchanges = Json::array(),
       streams = Json::array();
  for (const CallPart& part : call.parts)
    parts.push(std::move(Json::object()
                             .set("device", device_name(part.device, topology))
                             .set("part", part.what)
                             .set("weight_bytes", part.weight_bytes)));
  for (const CallTransfer& t : call.transfers) {
    Json one = Json::object();
    one.set("every_step", !t.once)
        .set("from", device_name(t.from, topology))
        .set("to", device_name(t.to, topology))
        .set("count", t.count)
        .set("bytes", t.bytes);
    one.set("values", strings_json(t.values));
    transfers.push(std::move(one));
  }
  for (const CallExchange& e : call.exchanges)
    exchanges.push(std::move(Json::object()
                                 .set("op", e.op)
                                 .set("count", e.count)
                                 .set("blocks", e.blocks)
                                 .set("bytes", e.bytes)));
  for (const CallStream& s : call.streams)
    streams.push(std::move(Json::object()
                               .set("device", device_name(s.device, topology))
                               .set("resident_bytes", s.resident_bytes)
                               .set("staging_ring_bytes", s.staging_ring_bytes)
                               .set("step_bytes", s.step_bytes)
                               .set("donor_bytes", s.donor_bytes)
                               .set("unpinned_bytes", s.unpinned_bytes)
                               .set("once_bytes", s.once_bytes)));
  if (streams.size() > 0) json.set("streams", std::move(streams));
  if (parts.size() > 0) json.set("parts", std::move(parts));
  if (transfers.size() > 0) json.set("transfers", std::move(transfers));
  if (exchanges.size() > 0) json.set("collectives", std::move(exchanges));
  if (!call.whole.empty()) json.set("whole_weights", strings_json(call.whole));
}

Json call_json(const PlacedCall& call, const Topology& topology) {
  const CallReport& report = call.report;
  Json json = Json::object(), ways = Json::array(), items = Json::array(), ranks = Json::array();
  json.set("model", report.model)
      .set("parallel", parallel_name(call.placement.parallel))
      .set("devices", devices_json(call.placement.devices, topology));
  json.set("reason", report.reason)
      .set("seconds", call.seconds)
      .set("step_seconds", call.step_seconds)
      .set("load_seconds", call.load_seconds);
  if (!report.why.empty()) json.set("why", report.why);
  if (report.step_count > 0)
    json.set("steps", report.step_count)
        .set("branches", report.set_count)
        .set("step_flops", report.step_flops);
  for (const double fraction : call.placement.item_fractions) items.push(fraction);
  for (const double fraction : call.placement.rank_fractions) ranks.push(fraction);
  for (const Alternative& way : report.alternatives) ways.push(alternative_json(way, topology));
  if (items.size() > 0) json.set("item_fractions", std::move(items));
  if (ranks.size() > 0) json.set("rank_fractions", std::move(ranks));
  if (report.rounding)
    json.set("faster_with_rounding",
             std::move(Json::object()
                           .set("name", report.rounding->name)
                           .set("seconds", report.rounding->seconds)
                           .set("step_seconds", report.rounding->step_seconds)));
  add_inside(report, topology, json);
  json.set("alternatives", std::move(ways));
  return json;
}

// Stages by device, in their order, or how many of the chunks it is given.
Json stages_json(const PlacedStages& stages, const Topology& topology) {
  Json devices = Json::array();
  for (std::uint32_t i = 0; i < stages.devices.size(); ++i) {
    const std::uint32_t d = stages.devices[i];
    Json device = std::move(Json::object().set("device", device_name(d, topology)));
    Json numbers = Json::array();
    for (std::uint32_t s = 0; s < stages.of_stage.size(); ++s)
      if (stages.of_stage[s] == i) numbers.push(s + 1);
    if (stages.deals_rounds())
      device.set("chunks", stages.rounds_of(i));
    else
      device.set("stages", std::move(numbers));
    device.set("bytes_under_way", stages.under_way_bytes[d]);
    devices.push(std::move(device));
  }
  return std::move(Json::object()
                       .set("chunks", stages.rounds)
                       .set("seconds", stages.seconds)
                       .set("alone_seconds", stages.alone_seconds)
                       .set("devices", std::move(devices)));
}

// `parts`: by node, what it may read in parts.
Json step_json(const Graph& graph, const Plan& plan, const Step& step,
               const std::vector<std::vector<Source>>& parts, const Topology& topology) {
  const Node& node = graph.nodes[step.node];
  Json one = Json::object();
  switch (step.kind) {
    case Step::Kind::run:
      one.set("kind", "run")
          .set("node", node.id)
          .set("class", node.type->name())
          .set("device", device_name(step.to, topology));
      if (!parts[step.node].empty()) {
        Json outputs = Json::array();
        for (const Source& source : parts[step.node]) outputs.push(output_name(graph, source));
        one.set("in_parts_of", std::move(outputs));
      }
      one.set("devices", devices_json(plan.assignments[step.node].devices, topology))
          .set("reason", plan.assignments[step.node].reason);
      if (const auto& stages = plan.assignments[step.node].stages)
        one.set("pipeline", stages_json(*stages, topology));
      else if (!plan.assignments[step.node].undivided.empty())
        one.set("no_pipeline", plan.assignments[step.node].undivided);
      if (!plan.assignments[step.node].calls.empty()) {
        Json calls = Json::array();
        for (const PlacedCall& call : plan.assignments[step.node].calls)
          calls.push(call_json(call, topology));
        one.set("calls", std::move(calls));
      }
      break;
    case Step::Kind::transfer:
      one.set("kind", "transfer")
          .set("node", node.id)
          .set("output", node.type->output(step.port).name);
      one.set("from", device_name(step.from, topology)).set("to", device_name(step.to, topology));
      break;
    case Step::Kind::release:
      one.set("kind", "release")
          .set("node", node.id)
          .set("output", node.type->output(step.port).name)
          .set("device", device_name(step.to, topology));
      break;
  }
  if (step.bytes != kUnknownBytes) one.set("bytes", step.bytes);
  Json after = Json::array();
  for (const std::uint32_t a : step.after) after.push(a);
  one.set("after", std::move(after));
  return one;
}

}  // namespace

Json plan_json(const Graph& graph, const Plan& plan, const Topology& topology) {
  Json steps = Json::array(), pending = Json::array(), warnings = Json::array();
  const std::vector<std::vector<Source>> parts = read_in_parts(graph, plan.assignments);
  for (const Step& step : plan.steps) steps.push(step_json(graph, plan, step, parts, topology));
  for (const std::string& p : plan.pending) pending.push(p);
  for (const std::string& w : plan.warnings) warnings.push(w);
  Json json = Json::object();
  json.set("seconds", plan.seconds)
      .set("fidelity", plan.fidelity == Fidelity::rounding ? "rounding" : "exact")
      .set("steps", std::move(steps))
      .set("pending", std::move(pending))
      .set("warnings", std::move(warnings));
  return json;
}

}  // namespace heddle::engine
