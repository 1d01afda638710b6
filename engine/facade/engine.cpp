#include <algorithm>

#include "engine/base/log.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/facade/data.h"
#include "engine/facade/inputs.h"
#include "engine/facade/layout.h"
#include "engine/facade/saved_workflow.h"
#include "engine/isolate/isolating.h"
#include "engine/isolate/python_packs.h"
#include "engine/memory/machine_memory.h"
#include "engine/plugin/host.h"
#include "engine/plugin/ledgers.h"
#include "engine/plugin/model_builder.h"
#include "engine/resources/available_memory.h"
#include "engine/run/comparison.h"
#include "engine/session/run_needs.h"

namespace heddle {

namespace {

namespace fs = std::filesystem;

// Any plugin may have a part in a result, so all of them count, by their very files: one that is
// built again is another.
std::unique_ptr<engine::PersistentCache> persistent_cache(const EngineOptions& options,
                                                          const engine::LoadedPlugins& plugins) {
  std::error_code failure;
  fs::create_directories(options.cache_dir, failure);
  if (failure) {
    engine::log(
        engine::Level::warning,
        engine::cat("nothing is kept for later runs: ",
                    engine::system_error(options.cache_dir.string(), failure.value()).full()));
    return nullptr;
  }
  auto persistent_cache =
      std::make_unique<engine::PersistentCache>(options.cache_dir, options.cache_dir_bytes);
  engine::Hasher build;
  build.add(engine::kEngineVersion).add(options.reference_kernels);
  std::map<std::string, engine::Hash128> files;
  for (const auto& plugin : plugins.plugins)
    files.emplace(engine::cat(plugin->id(), " ", plugin->version()),
                  persistent_cache->hashes.of(plugin->path()));
  for (const auto& [name, hash] : files) build.add(name).add(hash);
  persistent_cache->build = build.finish();
  return persistent_cache;
}

}  // namespace

Engine::Data::Data(EngineOptions given) : options(std::move(given)), hooks(options) {
  std::vector<fs::path> plugin_dirs = plugin_folders(options);
  for (fs::path& pack : engine::python_packs(options.isolation.python_nodes))
    plugin_dirs.push_back(std::move(pack));
  if (options.isolation.plugins.empty() && options.isolation.python_nodes.empty())
    plugins = engine::load_plugins(plugin_dirs);
  else
    plugins = engine::load_plugins(
        plugin_dirs, engine::isolating(options.isolation, engine::plugin_files(plugin_dirs),
                                       layout_of(options)));
  for (const engine::RefusedPlugin& refused : plugins.refused)
    engine::log(engine::Level::warning, engine::cat("plugin refused: ", refused.reason));

  folders = std::make_unique<engine::Folders>(layout_of(options));
  plugins.catalog->set_file_lister(
      [this](std::string_view folder, std::int32_t kind) { return folders->list(folder, kind); },
      [this](std::string_view folder) { return folders->places(folder); });

  environment = std::make_unique<engine::Environment>(
      options.cache_bytes != 0 ? options.cache_bytes : engine::machine_memory().total / 4);
  environment->host = engine::plugin_host();
  environment->catalog = plugins.catalog;
  environment->folders.find = [this](std::string_view folder, std::string_view name) {
    return folders->find(folder, name);
  };
  environment->folders.places = [this](std::string_view folder) { return folders->places(folder); };
  environment->folders.output = [this](std::string_view kind) { return folders->output(kind); };
  environment->build_model = [this](std::string_view role, const engine::Checkpoint& checkpoint,
                                    const heddle_value* config, const engine::Hints& hints) {
    return engine::build_model(*plugins.catalog, role, checkpoint, config, hints);
  };
  const engine::MemoryPolicy memory = memory_policy_of(options);
  environment->devices = engine::open_devices(
      plugins, {options.devices,
                options.compute,
                options.threads,
                options.reference_kernels,
                options.attention_dtype,
                options.linear_dtype,
                options.device_options,
                {options.degrade_after, options.degraded_seconds, options.clock},
                memory});
  engine::place_isolated_nodes(*plugins.catalog, environment->devices);
  environment->device_service.set_count(environment->devices.size());
  environment->host_ledger = engine::host_ledger_of(environment->devices, memory);
  environment->pinned_bytes = memory.pinned ? memory.pinned->of(environment->host_ledger->budget())
                                            : environment->host_ledger->budget() / 2;
  environment->hold_weights(std::make_shared<engine::HostBudget>(environment->host_ledger));
  engine::install_eviction(*environment);
  environment->topology = engine::topology_of(environment->devices);
  environment->topology.pinned_bytes = environment->host_weights->most_pinned();
  environment->prompt_limit = options.prompt_limit;
  const auto device_count = std::uint32_t(environment->devices.size());
  environment->admission.set_memories(device_count, device_count + 1, [this](std::uint32_t memory) {
    return engine::capacity_of(memory, *environment);
  });
  if (!options.cache_dir.empty())
    environment->persistent_cache = persistent_cache(options, plugins);
  if (!options.costs.empty())
    environment->costs = engine::framed(engine::option_frame("costs"), [&] {
      return engine::read_costs(engine::read_file(options.costs, engine::kCostsFile),
                                options.costs.string());
    });
  start_housekeeping();
}

Engine::Data::~Data() {
  housekeeping = {};
  const std::vector<std::shared_ptr<RunStatus>> under_way = runs_under_way();
  for (const auto& run : under_way) run->control.cancel();
  for (const auto& run : under_way) run->is_over.wait(false);
  for (const auto& weak : *fetched.lock())
    if (const auto values = weak.lock()) values->let_go();
}

void Engine::Data::remember(const std::shared_ptr<FetchedValues>& values) {
  const auto all = fetched.lock();
  std::erase_if(*all, [](const auto& weak) { return weak.expired(); });
  all->push_back(values);
}

std::vector<std::shared_ptr<RunStatus>> Engine::Data::runs_under_way() {
  std::vector<std::shared_ptr<RunStatus>> under_way;
  const std::lock_guard lock(mutex);
  for (const auto& weak : runs)
    if (auto run = weak.lock(); run != nullptr && !run->is_over)
      under_way.push_back(std::move(run));
  return under_way;
}

engine::Bound Engine::Data::bind(const Workflow::Data& flow,
                                 const engine::GivenValues& given) const {
  require_converted(flow);
  return engine::bind(flow.workflow, *plugins.catalog, given, options.prompt_limit);
}

engine::DeviceLoad Engine::Data::device_load(const RunStatus* but) {
  engine::DeviceLoad device_load;
  device_load.busy_seconds.assign(environment->devices.size(), 0);
  for (const engine::RunDevice& device : environment->devices) {
    auto& resident = device_load.resident.emplace_back();
    for (const engine::ModelWeights& each : device.weights->models())
      resident[each.model] += each.bytes;
  }
  std::vector<engine::RunLoad> loads;
  for (const auto& run : runs_under_way()) {
    if (run.get() == but || run->control.has_computed()) continue;
    const auto work = run->work.lock();
    const double done = work->seconds > 0 ? std::min(1.0, run->done_seconds / work->seconds) : 0;
    loads.push_back({work->busy_seconds, work->loads, 1 - done});
  }
  add_runs(loads, device_load);
  return device_load;
}

void Engine::Data::write_after(std::uint64_t run,
                               const std::shared_ptr<engine::OutputSequencer>& next) {
  std::erase_if(sequencers, [](const auto& entry) { return entry.second.expired(); });
  if (const auto found = sequencers.find(run); found != sequencers.end())
    if (const auto before = found->second.lock()) engine::OutputSequencer::follow(*before, next);
}

// Where no time is known, each device with a node counts the same.
PlannedWork Engine::Data::planned_work(const engine::Plan& plan) const {
  PlannedWork work;
  work.loads = plan.loads;
  std::vector<double>& busy = work.busy_seconds = plan.device_seconds;
  busy.resize(environment->devices.size());
  if (std::ranges::none_of(busy, [](double seconds) { return seconds > 0; }))
    for (const engine::Assignment& assignment : plan.assignments)
      for (const std::uint32_t d : assignment.devices)
        if (!assignment.on_host) busy[d] = 1;
  for (engine::NodeIndex n = 0; n < plan.assignments.size(); ++n)
    work.seconds += engine::planned_time(plan, n).seconds;
  const double most = *std::ranges::max_element(busy);
  for (std::size_t d = 0; d < busy.size(); ++d)
    if (busy[d] > 0 && busy[d] >= most / 2)
      work.devices.push_back(environment->devices[d].state->device().name());
  return work;
}

std::string Engine::Data::memory_name(std::uint32_t memory) const {
  return memory < environment->devices.size() ? environment->devices[memory].state->device().name()
                                              : environment->host_ledger->name();
}

Ready Engine::Data::prepare(const Workflow::Data& flow, Asked asked) const {
  require_converted(flow);
  return heddle::prepare(flow.workflow, std::move(asked), options, *environment);
}

Engine::Engine(EngineOptions options)
    : data_(translate_errors([&] { return std::make_unique<Data>(std::move(options)); })) {}
Engine::~Engine() = default;

Workflow Engine::load(const fs::path& path) const {
  return translate_errors([&] {
    Workflow flow;
    flow.data_ = load_workflow(path, data_->plugins.catalog);
    return flow;
  });
}

Workflow Engine::parse(std::string_view json, std::string_view name) const {
  return translate_errors([&] {
    Workflow flow;
    flow.data_ = read_workflow(json, name, data_->plugins.catalog);
    return flow;
  });
}

Workflow Engine::adopt(Workflow flow) const {
  return translate_errors([&] {
    if (flow.data_ == nullptr)
      throw engine::Error(engine::Code::invalid_argument,
                          "this workflow is empty: make it with Workflow::load or Workflow::parse");
    flow.data_ = adopt_workflow(*flow.data_, data_->plugins.catalog);
    return std::move(flow);
  });
}

std::string Engine::convert(const Workflow& flow,
                            const std::vector<std::string>& object_info) const {
  return translate_errors([&] {
    if (flow.data_ == nullptr)
      throw engine::Error(engine::Code::invalid_argument,
                          "this workflow is empty: make it with Workflow::load or Workflow::parse");
    return api_form(*flow.data_, *data_->plugins.catalog, object_info);
  });
}

namespace {

// What infer() of the nodes refuses. Of files only what their headers say is looked at, and what
// cannot be read is left to the run: it may be there by then. So is a workflow of which an earlier
// process may have kept results: nodes before these are not asked in a run.
std::optional<std::string> find_refusal(const engine::Graph& graph,
                                        const engine::Environment& environment) {
  const auto may_be_kept = [&](engine::NodeIndex n) {
    return graph.nodes[n].type->has(HEDDLE_NODE_CACHE_ON_DISK);
  };
  if (environment.persistent_cache != nullptr && std::ranges::any_of(graph.order, may_be_kept))
    return std::nullopt;
  try {
    engine::infer(graph, environment.host, {}, environment.catalog.get());
    return std::nullopt;
  } catch (const engine::Error& error) {
    if (error.code() != engine::Code::invalid_argument) return std::nullopt;
    return error.full();
  }
}

// Such a workflow does not begin, for none of its outputs.
void add_refusal(std::string refusal, engine::Json& answer, Engine::Problems& problems) {
  answer.set("error", engine::Json(engine::Json::object()
                                       .set("type", "prompt_outputs_failed_validation")
                                       .set("message", "Prompt outputs failed validation")
                                       .set("details", refusal)
                                       .set("extra_info", engine::Json::object())));
  problems.errors.push_back(std::move(refusal));
  problems.outputs.clear();
}

}  // namespace

Engine::Problems Engine::check(const Workflow& flow, Inputs inputs) const {
  return translate_errors([&] {
    const TakenInputs taken = take_inputs(std::move(inputs));
    const std::shared_ptr<const Workflow::Data> given = with_inputs(flow.data_, taken);
    Problems problems;
    engine::Bound bound = data_->bind(*given, values_of(*given, taken));
    for (engine::Problem& p : bound.problems) {
      const bool is_error = p.severity == engine::Problem::Severity::error;
      if (is_error && !p.lacks.empty()) ++problems.lacking;
      (is_error ? problems.errors : problems.warnings).push_back(std::move(p.message));
    }
    if (bound.can_run)
      for (const engine::NodeIndex sink : bound.graph.sinks)
        problems.outputs.push_back(bound.graph.nodes[sink].id);
    if (bound.can_run)
      if (std::optional<std::string> refusal = find_refusal(bound.graph, *data_->environment))
        add_refusal(std::move(*refusal), bound.answer, problems);
    problems.answer = engine::write_json(bound.answer);
    return problems;
  });
}

std::vector<PluginInfo> Engine::plugins() const {
  return translate_errors([&] {
    std::vector<PluginInfo> all;
    for (const auto& plugin : data_->plugins.plugins) {
      PluginInfo info{plugin->id(), plugin->version(), plugin->path().string(), "", {}};
      for (engine::ProvidedNames& names : engine::provided_names(*plugin, *data_->plugins.catalog))
        info.brings.push_back({std::move(names.kind), std::move(names.names)});
      all.push_back(std::move(info));
    }
    for (const engine::RefusedPlugin& refused : data_->plugins.refused)
      all.push_back({"", "", refused.path.string(), refused.reason, {}});
    return all;
  });
}

std::vector<std::string> Engine::node_types() const {
  std::vector<std::string> names;
  for (const std::string_view name : data_->plugins.catalog->type_names())
    if (!data_->plugins.catalog->find(name)->has(HEDDLE_NODE_BLOCK)) names.emplace_back(name);
  return names;
}

std::string Engine::input_type(std::string_view class_type, std::string_view input) const {
  return translate_errors([&]() -> std::string {
    const engine::NodeTypeRef type = data_->plugins.catalog->find(class_type);
    const auto port = type == nullptr ? std::nullopt : type->find_input(input);
    return port ? type->input(*port).type : "";
  });
}

std::string Engine::input_folder(std::string_view class_type, std::string_view input) const {
  return translate_errors([&]() -> std::string {
    const engine::NodeTypeRef type = data_->plugins.catalog->find(class_type);
    const auto port = type == nullptr ? std::nullopt : type->find_input(input);
    const heddle_widget* const widget = port ? type->input(*port).widget : nullptr;
    const bool chooses_one =
        widget != nullptr && widget->source != nullptr &&
        (widget->kind == HEDDLE_WIDGET_FILE || widget->kind == HEDDLE_WIDGET_FOLDER);
    return chooses_one ? widget->source : "";
  });
}

std::string Engine::object_info(std::string_view class_type) const {
  return translate_errors([&] {
    const engine::Catalog& catalog = *data_->plugins.catalog;
    if (!class_type.empty()) {
      const engine::NodeTypeRef type = catalog.find(class_type);
      if (type == nullptr)
        throw engine::Error(engine::Code::not_found,
                            engine::cat("there is no class ", engine::quote(class_type), ".",
                                        engine::did_you_mean(class_type, node_types())));
      return engine::write_json(engine::object_info(*type, catalog), 2);
    }
    engine::Json all = engine::Json::object();
    for (const std::string& name : node_types()) {
      const engine::Json one = engine::object_info(*catalog.find(name), catalog);
      for (const engine::Json::Member& member : one.members()) all.set(member.key, member.value);
    }
    return engine::write_json(all, 2);
  });
}

std::string Engine::version() const { return engine::kEngineVersion; }

}  // namespace heddle
