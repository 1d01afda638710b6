// A planning question as a JSON file: devices, costs, models and a graph of nodes that say what
// they cost. Placed and planned without a device. The form is what tests/golden/plans/*.json show:
//   devices   [{name, kind, model, memory, budget, compute, host, flops, bandwidth, busy,
//              left_out}]
//   pinned    bytes of streamed weights that host memory may pin for those that are not the host's
//   links     {"gpu:0 -> gpu:1": {kind, bytes_per_second, latency_seconds}}, one direction unless
//             "both" is true
//   costs     a costs file
//   fidelity  "rounding"; else exact
//   models    {name: {kind: flux|t5|clip|chain|u, ...sizes, scaled_fp8, hints}}
//   nodes     [{id, reads: ["a.0", "pass:a.0", "host:a.0"], outputs: ["16MiB", "unknown", "INT"],
//               shares: true if they are what it reads,
//               flops, bytes, scratch, host, device, prefer, parallel,
//               calls: [{model, steps, sets, batch, width, height, tokens}]}]
#pragma once

#include <deque>
#include <map>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/explain/plan_text.h"
#include "engine/graph/workflow.h"
#include "engine/place/call_steps.h"
#include "engine/place/place.h"
#include "engine/plugin/loader.h"
#include "engine/plugin/model_builder.h"
#include "tests/support/shape_models.h"
#include "tests/support/test_nodes.h"

namespace heddle::test {

class PlanCase {
 public:
  // `execute`: what its nodes do, where they are run.
  PlanCase(const engine::Json& json, const engine::Catalog& catalog, std::filesystem::path folder,
           decltype(heddle_node_desc::execute) execute = &execute_nothing)
      : catalog_(catalog), folder_(std::move(folder)), execute_(execute) {
    read_devices(json);
    if (text_of(json, "fidelity") == "rounding") fidelity_ = engine::Fidelity::rounding;
    if (const engine::Json* costs = json.find("costs"))
      costs_ = engine::read_costs(engine::write_json(*costs), "costs");
    if (const engine::Json* models = json.find("models"))
      for (const engine::Json::Member& m : models->members()) read_model(m.key, m.value);
    for (const engine::Json& node : json.find("nodes")->as_array()) read_node(node);
  }

  engine::Plan plan() const {
    engine::Plan plan = engine::make_plan(graph_,
                                          engine::place({.graph = graph_,
                                                         .inferred = inferred_,
                                                         .topology = topology_,
                                                         .costs = costs_,
                                                         .device_load = load_,
                                                         .fidelity = fidelity_}),
                                          inferred_, topology_);
    engine::add_steps(graph_, inferred_, topology_, plan);
    engine::annotate_calls(inferred_, engine::Prices(topology_, costs_), plan);
    return plan;
  }
  // What the plan says, or what it is refused with.
  std::string text() const {
    try {
      return engine::plan_text(graph_, plan(), topology_);
    } catch (const engine::Error& error) {
      return engine::cat("error: ", error.full(), "\n");
    }
  }
  const engine::Graph& graph() const { return graph_; }
  const engine::Topology& topology() const { return topology_; }
  const engine::Inferred& inferred() const { return inferred_; }

 private:
  using Json = engine::Json;

  static std::string text_of(const Json& json, std::string_view key, std::string standard = "") {
    const Json* found = json.find(key);
    return found == nullptr ? standard : found->as_string();
  }
  static double number_of(const Json& json, std::string_view key, double standard = 0) {
    const Json* found = json.find(key);
    return found == nullptr ? standard : found->as_double();
  }
  static std::uint64_t bytes_of(const Json& json, std::string_view key) {
    const std::string text = text_of(json, key);
    return text.empty() ? 0 : engine::parse_bytes(text).value();
  }
  static bool flag_of(const Json& json, std::string_view key) {
    const Json* found = json.find(key);
    return found != nullptr && found->as_bool();
  }
  static engine::Hints hints_of(const Json& json) {
    engine::Hints hints{
        text_of(json, "device"), text_of(json, "prefer"), text_of(json, "parallel"), {}};
    if (const Json* blocks = json.find("blocks"))
      for (const Json& b : blocks->as_array())
        hints.blocks.push_back({text_of(b, "match"), text_of(b, "device")});
    return hints;
  }

  void read_devices(const Json& json) {
    for (const Json& d : json.find("devices")->as_array()) {
      const std::string name = text_of(d, "name"), compute = text_of(d, "compute", "bf16");
      const std::uint64_t memory = bytes_of(d, "memory");
      topology_.devices.push_back(
          {name, text_of(d, "kind", name.substr(0, name.find(':'))), text_of(d, "model", "Card"),
           flag_of(d, "host"), compute == "f32" ? HEDDLE_F32 : HEDDLE_BF16, memory, memory,
           bytes_of(d, "budget"), number_of(d, "flops"), number_of(d, "bandwidth"),
           text_of(d, "left_out"), json.find("pinned") != nullptr && !flag_of(d, "host")});
    }
    for (const Json& d : json.find("devices")->as_array())
      load_.busy_seconds.push_back(number_of(d, "busy"));
    topology_.pinned_bytes = bytes_of(json, "pinned");
    const std::size_t n = topology_.devices.size();
    const auto side = [&](std::string_view name) {
      for (std::size_t i = 0; i < n; ++i)
        if (topology_.devices[i].name == name) return i;
      return n;
    };
    const auto visible = [&](std::size_t i) { return i == n || topology_.devices[i].host_visible; };
    for (std::size_t from = 0; from <= n; ++from)
      for (std::size_t to = 0; to <= n; ++to)
        topology_.links.push_back(
            {from == to || (visible(from) && visible(to)) ? engine::LinkFacts::Kind::same
             : visible(from) || visible(to)               ? engine::LinkFacts::Kind::direct
                                                          : engine::LinkFacts::Kind::through_host,
             0, 0});
    const Json* links = json.find("links");
    if (links == nullptr) return;
    for (const Json::Member& m : links->members()) {
      const std::size_t arrow = m.key.find(" -> ");
      const std::size_t from = side(m.key.substr(0, arrow)), to = side(m.key.substr(arrow + 4));
      const engine::LinkFacts link{
          text_of(m.value, "kind") == "direct" ? engine::LinkFacts::Kind::direct
                                               : engine::LinkFacts::Kind::through_host,
          number_of(m.value, "bytes_per_second"), number_of(m.value, "latency_seconds")};
      topology_.links[from * (n + 1) + to] = link;
      if (flag_of(m.value, "both")) topology_.links[to * (n + 1) + from] = link;
    }
  }

  void read_model(const std::string& name, const Json& json) {
    const std::string kind = text_of(json, "kind");
    const std::filesystem::path file = folder_ / (name + ".safetensors");
    const auto size = [&](const char* key, double standard) {
      return std::int64_t(number_of(json, key, standard));
    };
    engine::Hints hints =
        json.find("hints") == nullptr ? engine::Hints() : hints_of(*json.find("hints"));
    kinds_[name] = kind;
    widths_[name] = size("width", 1024);
    if (kind == "chain")
      models_[name] =
          chain_model(file, int(size("layers", 8)), size("width", 1024), std::move(hints));
    if (kind == "u")
      models_[name] = u_model(file, int(size("levels", 3)), int(size("blocks", 2)),
                              size("width", 1024), std::move(hints));
    const bool is_flux = kind == "flux";
    if (!is_flux && kind != "t5" && kind != "clip") return;
    write_header_only(file, is_flux        ? flux_header(size("doubles", 19), size("singles", 38))
                            : kind == "t5" ? t5_header()
                                           : clip_header());
    const engine::Checkpoint checkpoint = engine::open_checkpoint(file);
    models_[name] = engine::build_model(
        catalog_, is_flux ? "diffusion_model" : "text_encoder",
        flag_of(json, "scaled_fp8") ? checkpoint.scale_to_fp8() : checkpoint, nullptr, hints);
  }

  engine::CallSpec call_of(const Json& json) const {
    const std::string model = text_of(json, "model");
    const auto size = [&](const char* key, double standard) {
      return std::int64_t(number_of(json, key, standard));
    };
    const CallSize call{size("width", 1024),
                        size("height", 1024),
                        size("batch", 1),
                        size("tokens", 512),
                        std::uint32_t(size("steps", 20)),
                        std::uint32_t(size("sets", 1))};
    const std::string& kind = kinds_.at(model);
    if (kind == "flux") return flux_call(models_.at(model), call);
    if (kind == "t5" || kind == "clip") return text_call(models_.at(model), call, kind == "clip");
    return shape_call(models_.at(model), call, widths_.at(model));
  }

  const char* keep(std::string text) { return strings_.emplace_back(std::move(text)).c_str(); }

  void read_node(const Json& json) {
    const std::uint32_t flags = flag_of(json, "host") ? std::uint32_t(HEDDLE_NODE_HOST) : 0u;
    auto type = std::make_shared<TestNode>(keep(text_of(json, "type", "test.work")), flags);
    type->desc.execute = execute_;
    engine::Node node{text_of(json, "id"), text_of(json, "title"), nullptr, false, {}, {}, {}, {},
                      hints_of(json)};
    if (const Json* reads = json.find("reads"))
      for (const Json& read : reads->as_array()) {
        std::string text = read.as_string();
        const std::size_t colon = text.find(':');
        const std::string how = colon == std::string::npos ? "" : text.substr(0, colon);
        if (colon != std::string::npos) text = text.substr(colon + 1);
        const std::size_t dot = text.rfind('.');
        type->in(keep(engine::cat("in", node.inputs.size())), "TENSOR",
                 how == "pass"   ? HEDDLE_PORT_PASS
                 : how == "host" ? HEDDLE_PORT_HOST
                                 : 0);
        node.inputs.emplace_back(engine::Source{index_.at(text.substr(0, dot)),
                                                std::uint32_t(std::stoul(text.substr(dot + 1)))});
      }
    engine::NodeSpec spec;
    if (const Json* outputs = json.find("outputs"))
      for (const Json& output : outputs->as_array()) {
        const std::string text = output.as_string();
        const auto bytes = engine::parse_bytes(text);
        const bool is_model = text.starts_with("model:");
        type->out(bytes || text == "unknown" ? "TENSOR"
                  : is_model                 ? "MODEL"
                                             : keep(text),
                  keep(engine::cat("out", spec.outputs.size())));
        spec.outputs.emplace_back();
        if (bytes) spec.outputs.back().tensors[""] = info_of(HEDDLE_U8, {std::int64_t(*bytes)});
        if (is_model) spec.outputs.back().value = models_.at(text.substr(6));
        spec.outputs.back().is_shared = json.find("shares") != nullptr;
      }
    spec.flops = number_of(json, "flops");
    spec.bytes = number_of(json, "bytes");
    spec.scratch_bytes = bytes_of(json, "scratch");
    if (const Json* calls = json.find("calls"))
      for (const Json& call : calls->as_array()) spec.calls.push_back(call_of(call));
    node.type = type_of(std::move(type));
    index_[node.id] = engine::NodeIndex(graph_.nodes.size());
    graph_.order.push_back(engine::NodeIndex(graph_.nodes.size()));
    graph_.nodes.push_back(std::move(node));
    inferred_.nodes.push_back(std::move(spec));
  }

  const engine::Catalog& catalog_;
  const std::filesystem::path folder_;
  decltype(heddle_node_desc::execute) const execute_;
  engine::Topology topology_;
  engine::Costs costs_;
  engine::DeviceLoad load_;
  engine::Fidelity fidelity_ = engine::Fidelity::exact;
  std::map<std::string, engine::Value> models_;
  std::map<std::string, std::string> kinds_;
  std::map<std::string, std::int64_t> widths_;
  std::deque<std::string> strings_;
  std::map<std::string, engine::NodeIndex> index_;
  engine::Graph graph_;
  engine::Inferred inferred_;
};

}  // namespace heddle::test
