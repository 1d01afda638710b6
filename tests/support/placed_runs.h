// Workflows through the engine's own floors, with calls of models placed as a test says.
#pragma once

#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/graph/bind.h"
#include "engine/graph/workflow.h"
#include "engine/place/place.h"
#include "engine/plugin/devices.h"
#include "engine/plugin/host.h"
#include "engine/plugin/ledgers.h"
#include "engine/plugin/model_builder.h"
#include "engine/resources/available_memory.h"
#include "engine/resources/folders.h"
#include "engine/run/executor.h"

namespace heddle::test {

// The compute type of a selection.
inline std::map<std::string, std::string> all_in_f32(const std::vector<std::string>& devices) {
  std::map<std::string, std::string> compute;
  for (const std::string& device : devices) compute[device] = "f32";
  return compute;
}

class PlacedRuns {
 public:
  PlacedRuns(const engine::DeviceSelection& selection,
             const std::vector<std::filesystem::path>& plugins,
             const std::vector<std::filesystem::path>& models = {})
      : plugins_(engine::load_plugins(plugins)), folders_(models, "input", "output") {
    environment_.host = engine::plugin_host();
    environment_.catalog = plugins_.catalog;
    environment_.folders.find = [this](std::string_view folder, std::string_view name) {
      return folders_.find(folder, name);
    };
    environment_.build_model = [this](std::string_view role, const engine::Checkpoint& file,
                                      const heddle_value* config, const engine::Hints& hints) {
      return engine::build_model(*plugins_.catalog, role, file, config, hints);
    };
    plugins_.catalog->set_file_lister(
        [this](std::string_view folder, std::int32_t kind) { return folders_.list(folder, kind); },
        [this](std::string_view folder) { return folders_.places(folder); });
    environment_.devices = engine::open_devices(plugins_, selection);
    environment_.host_ledger = engine::host_ledger_of(environment_.devices, selection.memory);
    engine::install_eviction(environment_);
    environment_.topology = engine::topology_of(environment_.devices);
  }

  engine::Environment& environment() { return environment_; }

  std::function<void()> on_progress;  // called on the node's thread; set between runs

  // The bytes of the tensor that the workflow's node `id` gives as its output 0, computed anew.
  // Nodes with a `device` run there.
  std::vector<std::byte> run(const std::string& json, std::string_view id,
                             engine::CallPlacer placer = nullptr) {
    environment_.cache.clear();
    environment_.place_call = std::move(placer);
    engine::RunControl control;
    return start(json, id, control);
  }

  // The same with what the environment holds. Any thread.
  std::vector<std::byte> start(const std::string& json, std::string_view id,
                               engine::RunControl& control) {
    Progress quiet;
    quiet.notify = &on_progress;
    return start(json, id, control, quiet);
  }
  std::vector<std::byte> start(const std::string& json, std::string_view id,
                               engine::RunControl& control, engine::Observer& observer) {
    const engine::Value value = compute(json, id, control, observer);
    const engine::Tensor& tensor = engine::get_tensor(*value);
    std::vector<std::byte> bytes(engine::dense_bytes(tensor->info));
    environment_.devices[0].state->read(tensor, bytes.data(), bytes.size());
    return bytes;
  }

  // Only runs, whatever the node's first output is. Not beside another run.
  void run_only(const std::string& json, std::string_view id, engine::CallPlacer placer) {
    environment_.cache.clear();
    environment_.place_call = std::move(placer);
    engine::RunControl control;
    Progress quiet;
    quiet.notify = &on_progress;
    compute(json, id, control, quiet);
  }

 private:
  engine::Value compute(const std::string& json, std::string_view id, engine::RunControl& control,
                        engine::Observer& observer) {
    const engine::Workflow workflow = engine::parse_workflow(json, "test");
    engine::Bound bound = engine::bind(workflow, *plugins_.catalog);
    for (const engine::Problem& problem : bound.problems)
      if (problem.severity == engine::Problem::Severity::error)
        throw std::runtime_error(problem.message);
    engine::Graph& graph = bound.graph;
    graph.sinks.clear();  // only what is kept is computed
    engine::Inferred nothing;
    for (const engine::Node& node : graph.nodes)
      nothing.nodes.emplace_back().outputs.resize(node.type->output_count());
    const engine::Plan plan = engine::make_plan(
        graph, engine::place({graph, nothing, environment_.topology, engine::Costs{}}), nothing,
        environment_.topology);
    engine::Source wanted;
    for (engine::NodeIndex n = 0; n < graph.nodes.size(); ++n)
      if (graph.nodes[n].id == id) wanted = {n, 0};
    const engine::RunResult result =
        engine::execute({&graph, &plan, "", "", {wanted}}, environment_, observer, control);
    return result.fetched.at(wanted);
  }

  struct Progress final : engine::Observer {
    const std::function<void()>* notify = nullptr;
    bool listens() const override { return static_cast<bool>(*notify); }
    void node_progress(const engine::Node&, double, std::string_view) override { (*notify)(); }
  };
  engine::LoadedPlugins plugins_;
  engine::Folders folders_;
  engine::Environment environment_{std::uint64_t{256} << 20};
};

// The nodes of a model in contiguous ranges, one for each device, as the groups of their paths
// allow: `cuts` are shares.
inline engine::CallPlacement layers(const engine::Model& model, std::vector<std::uint32_t> devices,
                                    const std::vector<double>& fractions) {
  engine::CallPlacement placement{engine::ParallelMode::layers, std::move(devices), {}, {}, {}};
  std::vector<std::string> groups;  // in the order of the graph
  const auto group_of = [](const std::string& path) { return path.substr(0, path.rfind('.')); };
  for (const engine::NodeIndex n : model.graph->order) {
    const std::string group = group_of(model.graph->nodes[n].id);
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  }
  const std::vector<std::int64_t> counts =
      engine::shard_sizes(std::int64_t(groups.size()), fractions);
  for (const engine::Node& node : model.graph->nodes) {
    auto at = std::ranges::find(groups, group_of(node.id)) - groups.begin();
    std::uint32_t device = 0;
    while (at >= counts[device]) at -= counts[device++];
    placement.of_block.push_back(device);
  }
  return placement;
}

}  // namespace heddle::test
