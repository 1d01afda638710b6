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
  PlacedRuns(const core::DeviceSelection& selection,
             const std::vector<std::filesystem::path>& plugins,
             const std::vector<std::filesystem::path>& models = {})
      : plugins_(core::load_plugins(plugins)), folders_(models, "input", "output") {
    environment_.host = core::plugin_host();
    environment_.catalog = plugins_.catalog;
    environment_.folders.find = [this](std::string_view folder, std::string_view name) {
      return folders_.find(folder, name);
    };
    environment_.build_model = [this](std::string_view role, const core::Checkpoint& file,
                                      const heddle_value* config, const core::Hints& hints) {
      return core::build_model(*plugins_.catalog, role, file, config, hints);
    };
    plugins_.catalog->set_file_lister(
        [this](std::string_view folder, std::int32_t kind) { return folders_.list(folder, kind); },
        [this](std::string_view folder) { return folders_.places(folder); });
    environment_.devices = core::open_devices(plugins_, selection);
    environment_.host_ledger = core::host_ledger_of(environment_.devices, selection.memory);
    core::make_room_from(environment_);
    environment_.topology = core::topology_of(environment_.devices);
  }

  core::Environment& environment() { return environment_; }

  std::function<void()> on_progress;  // called on the node's thread; set between runs

  // The bytes of the tensor that the workflow's node `id` gives as its output 0, computed anew.
  // Nodes with a `device` run there.
  std::vector<std::byte> run(const std::string& json, std::string_view id,
                             core::CallPlacer placer = nullptr) {
    environment_.cache.clear();
    environment_.place_call = std::move(placer);
    core::RunControl control;
    return start(json, id, control);
  }

  // The same with what the environment holds. Any thread.
  std::vector<std::byte> start(const std::string& json, std::string_view id,
                               core::RunControl& control) {
    Progress quiet;
    quiet.tell = &on_progress;
    return start(json, id, control, quiet);
  }
  std::vector<std::byte> start(const std::string& json, std::string_view id,
                               core::RunControl& control, core::Observer& observer) {
    const core::Workflow workflow = core::parse_workflow(json, "test");
    core::Bound bound = core::bind(workflow, *plugins_.catalog);
    for (const core::Problem& problem : bound.problems)
      if (problem.severity == core::Problem::Severity::error)
        throw std::runtime_error(problem.message);
    core::Graph& graph = bound.graph;
    graph.sinks.clear();  // only what is kept is computed
    core::Inferred nothing;
    for (const core::Node& node : graph.nodes)
      nothing.nodes.emplace_back().outputs.resize(node.type->output_count());
    const core::Plan plan =
        core::make_plan(graph, core::place({graph, nothing, environment_.topology, core::Costs{}}),
                        nothing);
    core::Source wanted;
    for (core::NodeIndex n = 0; n < graph.nodes.size(); ++n)
      if (graph.nodes[n].id == id) wanted = {n, 0};
    const core::RunResult result =
        core::execute({&graph, &plan, "", "", {wanted}}, environment_, observer, control);
    const core::Tensor& tensor = core::get_tensor(*result.kept.at(wanted));
    std::vector<std::byte> bytes(core::dense_bytes(tensor->info));
    environment_.devices[0].state->read(tensor, bytes.data(), bytes.size());
    return bytes;
  }

 private:
  struct Progress final : core::Observer {
    const std::function<void()>* tell = nullptr;
    bool listens() const override { return static_cast<bool>(*tell); }
    void node_progress(const core::Node&, double, std::string_view) override { (*tell)(); }
  };
  core::LoadedPlugins plugins_;
  core::Folders folders_;
  core::Environment environment_{std::uint64_t{256} << 20};
};

// The nodes of a model in contiguous ranges, one for each device, as the groups of their paths
// allow: `cuts` are shares.
inline core::CallPlacement layers(const core::Model& model, std::vector<std::uint32_t> devices,
                                  const std::vector<double>& shares) {
  core::CallPlacement placement{core::ParallelMode::layers, std::move(devices), {}, {}, {}};
  std::vector<std::string> groups;  // in the order of the graph
  const auto group_of = [](const std::string& path) { return path.substr(0, path.rfind('.')); };
  for (const core::NodeIndex n : model.graph->order) {
    const std::string group = group_of(model.graph->nodes[n].id);
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  }
  const std::vector<std::int64_t> counts = core::divide(std::int64_t(groups.size()), shares);
  for (const core::Node& node : model.graph->nodes) {
    auto at = std::ranges::find(groups, group_of(node.id)) - groups.begin();
    std::uint32_t device = 0;
    while (at >= counts[device]) at -= counts[device++];
    placement.of_block.push_back(device);
  }
  return placement;
}

}  // namespace heddle::test
