#include <algorithm>

#include "engine/base/log.h"
#include "engine/base/own_folder.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/facade/data.h"
#include "engine/facade/inputs.h"
#include "engine/memory/machine_memory.h"
#include "engine/plugin/host.h"
#include "engine/plugin/ledgers.h"
#include "engine/plugin/model_builder.h"
#include "engine/resources/available_memory.h"

namespace heddle {

namespace {

namespace fs = std::filesystem;

// Plugins stand beside the library, as in a build folder; beside its lib/, as in a bundle; or beside the program. The first of these
// that is there; all of them where none is, so that whoever misses a plugin learns where it was looked for.
std::vector<fs::path> shipped_plugins() {
  const fs::path library = core::library_folder(), program = core::program_folder();
  std::vector<fs::path> places{library / "plugins"};
  if (library.filename() == "lib") places.push_back(library.parent_path() / "plugins");
  if (program != library) places.push_back(program / "plugins");
  std::error_code error;
  const auto found = std::ranges::find_if(places, [&](const fs::path& place) { return fs::is_directory(place, error); });
  if (found != places.end()) return {*found};
  return places;
}

// graphs/models stands in the source tree above the build folder, or in the folder that an installed library or program is in.
std::vector<fs::path> shipped_models() {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::path& folder : {core::library_folder(), core::program_folder()})
    for (const fs::path& base : {folder, folder.parent_path(), folder.parent_path().parent_path()}) {
      const fs::path models = base / "graphs/models";
      if (fs::is_directory(models, error) && std::ranges::find(found, models) == found.end()) found.push_back(models);
    }
  return found;
}

// Any plugin may have a part in a result, so all of them count, by their very files: one that is built again is another.
std::unique_ptr<core::Keeping> keeping(const EngineOptions& options, const core::LoadedPlugins& plugins) {
  std::error_code failure;
  fs::create_directories(options.keep_dir, failure);
  if (failure) {
    core::log(core::Level::warning, core::cat("nothing is kept for later runs: ", core::system_error(options.keep_dir.string(), failure.value()).full()));
    return nullptr;
  }
  auto keeping = std::make_unique<core::Keeping>(options.keep_dir, options.keep_bytes);
  core::Hasher build;
  build.add(core::kEngineVersion).add(options.reference_kernels);
  std::map<std::string, core::Hash128> files;
  for (const auto& plugin : plugins.plugins) files.emplace(core::cat(plugin->id(), " ", plugin->version()), keeping->hashes.of(plugin->path()));
  for (const auto& [name, hash] : files) build.add(name).add(hash);
  keeping->build = build.finish();
  return keeping;
}

}  // namespace

Engine::Data::Data(EngineOptions given) : options(std::move(given)), hooks(options) {
  std::vector<fs::path> plugin_dirs = options.default_plugin_dir.empty() ? shipped_plugins() : std::vector{options.default_plugin_dir};
  plugin_dirs.insert(plugin_dirs.end(), options.plugin_dirs.begin(), options.plugin_dirs.end());
  plugins = core::load_plugins(plugin_dirs);
  for (const core::RefusedPlugin& refused : plugins.refused) core::log(core::Level::warning, core::cat("plugin refused: ", refused.reason));

  std::vector<fs::path> models = options.model_dirs;
  for (const fs::path& shipped : shipped_models())
    if (std::ranges::find(models, shipped) == models.end()) models.push_back(shipped);
  folders = std::make_unique<core::Folders>(std::move(models), options.input_dir, options.output_dir);
  plugins.catalog->set_file_lister([this](std::string_view folder, std::int32_t kind) { return folders->list(folder, kind); },
                                   [this](std::string_view folder) { return folders->places(folder); });

  environment = std::make_unique<core::Environment>(options.cache_bytes != 0 ? options.cache_bytes : core::machine_memory().total / 4);
  environment->host = core::plugin_host();
  environment->catalog = plugins.catalog;
  environment->folders.find = [this](std::string_view folder, std::string_view name) { return folders->find(folder, name); };
  environment->folders.output = [this](std::string_view kind) { return folders->output(kind); };
  environment->build_model = [this](std::string_view role, const core::Checkpoint& checkpoint, const heddle_value* config, const core::Hints& hints) {
    return core::build_model(*plugins.catalog, role, checkpoint, config, hints);
  };
  const core::MemoryPolicy memory = memory_policy_of(options);
  environment->devices = core::open_devices(plugins, {options.devices, options.compute, options.threads, options.reference_kernels,
                                                       options.device_options, {options.degrade_after, options.degraded_seconds, options.clock}, memory});
  environment->host_ledger = core::host_ledger_of(environment->devices, memory);
  environment->pinned_bytes = memory.pinned ? memory.pinned->of(environment->host_ledger->budget()) : environment->host_ledger->budget() / 2;
  environment->hold_weights(std::make_shared<core::HostRoom>(environment->host_ledger));
  core::make_room_from(*environment);
  environment->topology = core::topology_of(environment->devices);
  environment->topology.pinned_bytes = environment->host_weights->most_pinned();
  environment->prompt_limit = options.prompt_limit;
  if (!options.keep_dir.empty()) environment->keeping = keeping(options, plugins);
  if (!options.costs.empty())
    environment->costs = core::framed(core::option_frame("costs"), [&] {
      return core::read_costs(core::read_file(options.costs, core::kCostsFile), options.costs.string());
    });
  start_housekeeping();
}

Engine::Data::~Data() {
  housekeeping = {};
  std::vector<std::shared_ptr<Run::Data>> alive;
  {
    const std::lock_guard lock(mutex);
    for (const auto& weak : runs)
      if (auto run = weak.lock()) alive.push_back(std::move(run));
  }
  for (const auto& run : alive) run->control.cancel();
  for (const auto& run : alive) run->outcome.wait();
}

core::Bound Engine::Data::bind(const Workflow::Data& flow, const core::GivenValues& given) const {
  return core::bind(flow.workflow, *plugins.catalog, {}, given, options.prompt_limit);
}

core::Crowd Engine::Data::crowd() {
  core::Crowd crowd;
  crowd.busy_seconds.assign(environment->devices.size(), 0);
  std::vector<std::shared_ptr<Run::Data>> alive;  // the last holder joins a thread: not under the lock
  {
    const std::lock_guard lock(mutex);
    for (const auto& weak : runs) alive.push_back(weak.lock());
  }
  for (const auto& run : alive) {
    if (run == nullptr || run->control.has_computed()) continue;
    if (run->outcome.wait_for(std::chrono::seconds(0)) == std::future_status::ready) continue;
    for (std::size_t d = 0; d < run->busy_seconds.size(); ++d) crowd.busy_seconds[d] += run->busy_seconds[d];
  }
  return crowd;
}

void Engine::Data::write_after(std::uint64_t run, const std::shared_ptr<core::WriteTurn>& next) {
  std::erase_if(turns, [](const auto& entry) { return entry.second.expired(); });
  if (const auto found = turns.find(run); found != turns.end())
    if (const auto before = found->second.lock()) core::WriteTurn::follow(*before, next);
}

// What keeps whom busy, as planned. Where no time is known, each device with a node counts the same.
std::vector<double> Engine::Data::busy_seconds(const core::Plan& plan) const {
  std::vector<double> busy = plan.device_seconds;
  busy.resize(environment->devices.size());
  if (std::ranges::any_of(busy, [](double seconds) { return seconds > 0; })) return busy;
  for (const core::Assignment& place : plan.places)
    for (const std::uint32_t d : place.devices)
      if (!place.on_host) busy[d] = 1;
  return busy;
}

Ready Engine::Data::prepare(const Workflow::Data& flow, Asked asked) const { return heddle::prepare(flow.workflow, std::move(asked), options, *environment); }

Engine::Engine(EngineOptions options) : data_(outward([&] { return std::make_unique<Data>(std::move(options)); })) {}
Engine::~Engine() = default;

Workflow Engine::load(const fs::path& path) const {
  return outward([&] { return parse(core::read_file(path, core::kWorkflowFile), path.filename().string()); });
}

Workflow Engine::parse(std::string_view json, std::string_view name) const {
  return outward([&] {
    Workflow flow;
    flow.data_ = std::make_shared<const Workflow::Data>(Workflow::Data{core::parse_workflow(json, name), data_->plugins.catalog});
    return flow;
  });
}

Workflow Engine::adopt(Workflow flow) const {
  return outward([&] {
    if (flow.data_ == nullptr) throw core::Error(core::Code::invalid_argument, "this workflow is empty: make it with Workflow::load or Workflow::parse");
    auto adopted = std::make_shared<Workflow::Data>(*flow.data_);
    adopted->catalog = data_->plugins.catalog;
    flow.data_ = std::move(adopted);
    return std::move(flow);
  });
}

Engine::Problems Engine::check(const Workflow& flow, Inputs inputs) const {
  return outward([&] {
    const TakenInputs taken = take_inputs(std::move(inputs));
    const std::shared_ptr<const Workflow::Data> given = with_inputs(flow.data_, taken);
    Problems problems;
    for (core::Problem& p : data_->bind(*given, values_of(*given, taken)).problems)
      (p.severity == core::Problem::Severity::error ? problems.errors : problems.warnings).push_back(std::move(p.message));
    return problems;
  });
}

std::vector<PluginInfo> Engine::plugins() const {
  return outward([&] {
    std::vector<PluginInfo> all;
    for (const auto& plugin : data_->plugins.plugins) {
      PluginInfo info{plugin->id(), plugin->version(), plugin->path().string(), "", {}};
      for (const void* desc : plugin->provide(HEDDLE_NODES)) info.brings.push_back(static_cast<const heddle_node_desc*>(desc)->type);
      for (const void* desc : plugin->provide(HEDDLE_MODELS)) info.brings.push_back(core::cat("model ", static_cast<const heddle_model_desc*>(desc)->family));
      for (const void* desc : plugin->provide(HEDDLE_DEVICES)) info.brings.push_back(core::cat("device ", static_cast<const heddle_device_desc*>(desc)->kind));
      all.push_back(std::move(info));
    }
    for (const core::RefusedPlugin& refused : data_->plugins.refused) all.push_back({"", "", refused.path.string(), refused.reason, {}});
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
  return outward([&]() -> std::string {
    const core::NodeTypeRef type = data_->plugins.catalog->find(class_type);
    const auto port = type == nullptr ? std::nullopt : type->find_input(input);
    return port ? type->input(*port).type : "";
  });
}

std::string Engine::object_info(std::string_view class_type) const {
  return outward([&] {
    const core::Catalog& catalog = *data_->plugins.catalog;
    if (!class_type.empty()) {
      const core::NodeTypeRef type = catalog.find(class_type);
      if (type == nullptr)
        throw core::Error(core::Code::not_found, core::cat("there is no class ", core::quote(class_type), ".", core::did_you_mean(class_type, node_types())));
      return core::write_json(core::object_info(*type, catalog), 2);
    }
    core::Json all = core::Json::object();
    for (const std::string& name : node_types()) {
      const core::Json one = core::object_info(*catalog.find(name), catalog);
      for (const core::Json::Member& member : one.members()) all.set(member.key, member.value);
    }
    return core::write_json(all, 2);
  });
}

std::string Engine::version() const { return core::kEngineVersion; }

}  // namespace heddle
