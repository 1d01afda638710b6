#include "engine/cli/settings.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/own_folder.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/cli/read_values.h"
#include "engine/cli/serve_settings.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Code;
using engine::Error;
using engine::quote;

constexpr unsigned kMostSeconds = 1'000'000'000;
constexpr unsigned kMostSteps = 1'000'000'000;
constexpr unsigned kMostThreads = 4096;

unsigned read_threads(const Layer& layer) {
  unsigned threads = 0;
  for (const Given& given : layer.of("threads"))
    threads =
        read_number(given, kMostThreads,
                    cat("a number of threads from 1 to ", kMostThreads, ", or 0 for all cores"));
  return threads;
}

Pair read_pair(const Given& given, std::string_view form) {
  const std::size_t equals = given.text.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse(given, cat("expected ", form, ", got ", quote(given.text), "."));
  return {given.text.substr(0, equals), given.text.substr(equals + 1), given.origin, given.where};
}

std::vector<Pair> read_pairs(const Layer& layer, std::string_view option) {
  std::vector<Pair> pairs;
  for (const Given& given : layer.of(option)) {
    pairs.push_back(read_pair(given, find_option(option)->value));
    if (option != "set" && pairs.back().value.empty())
      refuse(given, cat("expected ", find_option(option)->value, ", got ", quote(given.text), "."));
  }
  return pairs;
}

MemorySize read_size(const std::string& text, const std::string& where) {
  if (const std::optional<double> share = engine::parse_percent(text))
    return MemorySize::of_all(*share);
  if (const std::optional<std::uint64_t> bytes = engine::parse_bytes(text)) return *bytes;
  throw Error(Code::invalid_argument,
              cat(where, ": expected a size such as 14GiB, 800MiB or 60%, got ", quote(text), "."));
}

std::map<std::string, MemorySize> read_sizes(const Layer& layer, std::string_view option) {
  std::map<std::string, MemorySize> sizes;
  for (const Pair& pair : read_pairs(layer, option))
    sizes[pair.key] = read_size(pair.value, pair.where);
  return sizes;
}

// "cuda" of "cuda:0"; the same of "cuda".
std::string device_kind(std::string_view device) {
  return std::string(device.substr(0, device.find(':')));
}

// Higher precedence stands behind lower. What it says of a kind counts for each of its devices.
void read_budgets(const Layer& layer, Settings& settings) {
  std::map<std::string, Origin> origins;
  for (const Pair& pair : read_pairs(layer, "budget")) {
    std::erase_if(origins, [&](const auto& earlier) {
      return earlier.second != pair.origin && device_kind(earlier.first) == pair.key;
    });
    origins[pair.key] = pair.origin;
    settings.engine.budgets[pair.key] = read_size(pair.value, pair.where);
  }
  std::erase_if(settings.engine.budgets,
                [&](const auto& budget) { return !origins.contains(budget.first); });
  for (const auto& [device, origin] : origins)
    if (origin == Origin::configuration) settings.configured_budgets.insert(device);
}

std::optional<MemorySize> read_size(const Layer& layer, std::string_view option) {
  std::optional<MemorySize> size;
  for (const Given& given : layer.of(option)) size = read_size(given.text, given.where);
  return size;
}

// Nothing can be done with no memory at all: most likely a unit is missing or wrong.
void refuse_nothing(const Layer& layer, std::string_view option) {
  for (const Given& given : layer.of(option)) {
    const std::string size = given.text.substr(given.text.find('=') + 1);
    if (engine::parse_bytes(size) == std::uint64_t{0})
      refuse(given, cat("nothing can run in no memory: got ", quote(given.text), "."));
  }
}

std::map<std::string, std::string> read_compute(const Layer& layer) {
  static constexpr std::array<std::string_view, 3> kTypes = {"f32", "bf16", "fp16"};
  std::map<std::string, std::string> compute;
  for (const Pair& pair : read_pairs(layer, "compute")) {
    if (std::find(kTypes.begin(), kTypes.end(), pair.value) == kTypes.end())
      throw Error(Code::invalid_argument,
                  cat(pair.where, ": there is no compute type ", quote(pair.value), ".",
                      engine::did_you_mean(pair.value, kTypes), " The types are ",
                      engine::join(kTypes, ", "), "."));
    compute[pair.key] = pair.value;
  }
  return compute;
}

// "default", or the other type that there is.
std::string read_dtype(const Layer& layer, std::string_view option, std::string_view other) {
  const std::array<std::string_view, 2> types = {"default", other};
  std::string type;
  for (const Given& given : layer.of(option)) {
    if (std::ranges::find(types, given.text) == types.end())
      refuse(given, cat("expected default or ", other, ", got ", quote(given.text), ".",
                        engine::did_you_mean(given.text, types)));
    type = given.text;
  }
  return type;
}

std::map<std::string, std::string> places_of(const Layer& layer) {
  std::map<std::string, std::string> places;
  for (const Given& given : layer.of("attention-dtype"))
    places[engine::option_frame("attention_dtype")] = given.where;
  for (const Given& given : layer.of("linear-dtype"))
    places[engine::option_frame("linear_dtype")] = given.where;
  for (const Given& given : layer.of("threads"))
    places[engine::option_frame("threads")] = given.where;
  for (const Given& given : layer.of("costs")) places[engine::option_frame("costs")] = given.where;
  for (const Given& given : layer.of("comfyui"))
    places[engine::option_frame("comfyui_dir")] = given.where;
  for (const Given& given : layer.of("devices"))
    for (const std::string& name : separate(given))
      places[engine::option_frame("devices", name)] = given.where;
  // Of the options that are maps: how EngineOptions calls them.
  static constexpr std::pair<std::string_view, std::string_view> kMaps[] = {
      {"options", "device_options"},
      {"compute", "compute"},
      {"budget", "budgets"},
      {"reserve", "reserves"}};
  for (const auto& [option, field] : kMaps)
    for (const Pair& pair : read_pairs(layer, option))
      places[engine::option_frame(field, pair.key)] = pair.where;
  return places;
}

std::uint64_t read_size(const Given& given) {
  const std::optional<std::uint64_t> bytes = engine::parse_bytes(given.text);
  if (!bytes) refuse(given, cat("expected a size such as 1GiB, got ", quote(given.text), "."));
  return *bytes;
}

Fidelity read_fidelity(const Layer& layer) {
  static constexpr std::array<std::string_view, 2> kNames = {"exact", "rounding"};
  Fidelity fidelity = Fidelity::exact;
  for (const Given& given : layer.of("fidelity")) {
    if (std::ranges::find(kNames, given.text) == kNames.end())
      refuse(given, cat("expected exact or rounding, got ", quote(given.text), ".",
                        engine::did_you_mean(given.text, kNames)));
    fidelity = given.text == "rounding" ? Fidelity::rounding : Fidelity::exact;
  }
  return fidelity;
}

std::optional<engine::Level> read_log_level(const Layer& layer) {
  static constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warning", "error"};
  std::optional<engine::Level> level;
  for (const Given& given : layer.of("log-level")) {
    const auto name = std::ranges::find(kNames, given.text);
    if (name == kNames.end())
      refuse(given, cat("expected debug, info, warning or error, got ", quote(given.text), ".",
                        engine::did_you_mean(given.text, kNames)));
    level = engine::Level(name - kNames.begin());
  }
  return level;
}

void read_isolation(const Layer& layer, Isolation& isolation) {
  isolation.plugins = read_words(layer, "isolate");
  for (const Given& given : layer.of("isolate-timeout"))
    isolation.call_seconds =
        read_number(given, kMostSeconds, cat("seconds up to ", kMostSeconds, "; 0: no limit"));
  for (const Given& given : layer.of("isolate-memory")) isolation.memory_bytes = read_size(given);
  isolation.sandbox = read_flag(layer, "isolate-sandbox");
  for (const Given& given : layer.of("python-nodes")) {
    std::error_code ignored;
    isolation.python_nodes.push_back(read_path(given));
    if (!std::filesystem::exists(isolation.python_nodes.back(), ignored))
      refuse(given, cat("there is no folder ", quote(isolation.python_nodes.back().string()), "."));
  }
  for (const Given& given : layer.of("python")) isolation.python = read_path(given);
}

std::vector<std::filesystem::path> read_folders(const Layer& layer, std::string_view option) {
  std::vector<std::filesystem::path> folders;
  for (const Given& given : layer.of(option)) {
    std::filesystem::path folder = read_path(given);
    std::error_code ignored;
    if (given.origin == Origin::configuration && option == "plugins" && folder.is_relative())
      folder = engine::program_folder() / folder;
    if (!std::filesystem::is_directory(folder, ignored))
      refuse(given, cat("there is no folder ", quote(folder.string()), "."));
    folders.push_back(std::move(folder));
  }
  return folders;
}

}  // namespace

std::filesystem::path numbered(const std::filesystem::path& file, std::size_t run,
                               std::size_t count) {
  if (count == 1 || file.empty() || engine::is_written_through(file)) return file;
  return file.parent_path() / cat(file.stem().string(), ".", run, file.extension().string());
}

void prefer_workflow_budgets(Settings& settings,
                             const std::map<std::string, std::uint64_t>& given) {
  auto& budgets = settings.engine.budgets;
  for (const auto& [name, bytes] : given) {
    const std::string& said = budgets.contains(name) ? name : device_kind(name);
    if (settings.configured_budgets.contains(said)) budgets[name] = bytes;
  }
}

EngineError with_place(const EngineError& error, const Settings& settings) {
  std::vector<std::string> trail = error.trail();
  if (trail.empty() || !trail.front().starts_with("option ")) return error;
  const std::string frame = trail.front();
  std::string_view rest = std::string_view(error.what()).substr(frame.size());  // ": ..."
  const auto found = settings.places_of_options.find(frame);
  if (found != settings.places_of_options.end()) {
    trail.front() = found->second;
    return {error.code(), std::move(trail), cat(found->second, rest)};
  }
  trail.erase(trail.begin());  // by default, as the costs that were measured here
  rest.remove_prefix(std::min<std::size_t>(rest.size(), rest.starts_with(": ") ? 2 : 3));
  return {error.code(), std::move(trail), std::string(rest)};
}

Settings read_settings(const Layer& layer) {
  Settings settings;
  settings.places_of_options = places_of(layer);
  settings.sets = read_pairs(layer, "set");
  settings.places = read_pairs(layer, "place");
  settings.parallel = read_pairs(layer, "parallel");
  for (const Given& given : layer.of("only"))
    for (std::string& node : separate(given))
      settings.only.push_back({std::move(node), given.origin, given.where});
  settings.engine.fidelity = read_fidelity(layer);
  settings.engine.devices = read_words(layer, "devices");
  settings.engine.threads = read_threads(layer);
  settings.engine.compute = read_compute(layer);
  settings.engine.attention_dtype = read_dtype(layer, "attention-dtype", "fp8_e4m3fn");
  settings.engine.linear_dtype = read_dtype(layer, "linear-dtype", "int8");
  for (const char* option : {"budget", "host-budget"}) refuse_nothing(layer, option);
  read_budgets(layer, settings);
  settings.engine.reserves = read_sizes(layer, "reserve");
  settings.engine.host_budget = read_size(layer, "host-budget");
  settings.engine.pinned = read_size(layer, "pinned");
  settings.engine.host_floor = read_size(layer, "host-floor");
  for (Pair& pair : read_pairs(layer, "options"))
    settings.engine.device_options[pair.key] = std::move(pair.value);
  settings.engine.model_dirs = read_folders(layer, "models");
  settings.engine.plugin_dirs = read_folders(layer, "plugins");
  for (const Given& given : layer.of("comfyui")) settings.engine.comfyui_dir = read_path(given);
  for (const Given& given : layer.of("input")) settings.engine.input_dir = read_path(given);
  for (const Given& given : layer.of("object-info"))
    settings.object_info.push_back(read_path(given));
  for (const Given& given : layer.of("costs")) settings.costs_file = read_path(given);
  for (const Given& given : layer.of("trace")) settings.trace = read_new_file(given);
  for (const Given& given : layer.of("svg")) settings.svg = read_new_file(given);
  for (const Given& given : layer.of("output")) settings.engine.output_dir = read_path(given);
  for (const Given& given : layer.of("cache"))
    settings.cache = is_no_folder(given.text) ? std::filesystem::path() : read_path(given);
  for (const Given& given : layer.of("cache-limit"))
    settings.engine.cache_dir_bytes = read_size(given);
  for (const Given& given : layer.of("prompt-limit"))
    settings.engine.prompt_limit = read_size(given);
  read_isolation(layer, settings.engine.isolation);
  for (const Given& given : layer.of("memory-wait"))
    settings.memory_wait = read_number(given, kMostSeconds, cat("seconds up to ", kMostSeconds));
  for (const Given& given : layer.of("checkpoint"))
    settings.checkpoints.file = read_new_file(given);
  settings.checkpoints.every = settings.checkpoints.file.empty() ? 0 : 1;
  for (const Given& given : layer.of("checkpoint-every"))
    settings.checkpoints.every =
        read_number(given, kMostSteps, cat("steps up to ", kMostSteps, "; 0: no checkpoints"));
  settings.serve = read_serve_settings(layer);
  settings.server = read_server_settings(layer);
  settings.job = read_job_settings(layer);
  settings.json = read_flag(layer, "json");
  settings.min_memory = read_flag(layer, "min-memory");
  settings.quiet = read_flag(layer, "quiet");
  settings.log_level = read_log_level(layer);
  return settings;
}

}  // namespace heddle::cli
