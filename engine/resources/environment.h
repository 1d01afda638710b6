// What a run works with: devices, weights, caches, files. Owned by the engine, shared by all runs;
// its parts are thread-safe.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/device/health.h"
#include "engine/files/checkpoint_cache.h"
#include "engine/files/disk_cache.h"
#include "engine/files/file_hashes.h"
#include "engine/graph/catalog.h"
#include "engine/graph/graph.h"
#include "engine/graph/prompt_limit.h"
#include "engine/memory/host_weights.h"
#include "engine/memory/weights.h"
#include "engine/place/costs.h"
#include "engine/place/topology.h"
#include "engine/program/call_placement.h"
#include "engine/program/infer.h"
#include "engine/resources/admission.h"
#include "engine/resources/device_service.h"
#include "engine/resources/forecast.h"
#include "engine/resources/kept_call_needs.h"
#include "engine/resources/output_cache.h"
#include "engine/resources/single_flight.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

struct RunDevice {
  std::unique_ptr<DeviceState> state;
  std::unique_ptr<WeightStore> weights;
  std::unique_ptr<DeviceHealth> health = std::make_unique<DeviceHealth>();
};

// Finds the files that nodes name, and says where new ones go.
struct FolderService {
  std::function<std::string(std::string_view folder, std::string_view name)>
      find;  // throws not_found with the places searched
  std::function<std::vector<std::string>(std::string_view folder)> places;
  std::function<std::string(std::string_view kind)> output;  // "output", "temp"; made when missing
};

// Makes a MODEL value; the hints are those of the node that asks.
using ModelBuilder = std::function<Value(std::string_view role, const Checkpoint& checkpoint,
                                         const heddle_value* config, const Hints& hints)>;

// A model opened by a node, seen at its first step. For tests, which hold infer() and execute()
// together. Called on the node's thread.
using OpenObserver = std::function<void(const Node& node, const CallSpec& call)>;

// Where a call of a model runs; `home` is the device of the node that calls, an index into the
// devices.
using CallPlacer = std::function<CallPlacement(const Node& caller, std::uint32_t home,
                                               const Model& model, const CallSpec& call)>;

// Results that outlive the process.
struct PersistentCache {
  PersistentCache(const std::filesystem::path& folder, std::uint64_t limit_bytes)
      : values(folder, limit_bytes), hashes(folder / "files.json") {}
  DiskCache values;
  FileHashes hashes;
  Hash128 build;  // of the program and its plugins
};

// What nodes are made and served with. Set before runs start.
struct NodeServices {
  const heddle_host* host = nullptr;  // what nodes are created with
  std::shared_ptr<const Catalog> catalog;
  FolderService folders;
  ModelBuilder build_model;
  std::uint64_t prompt_limit = kNoPromptLimit;  // bytes of a text that a model reads
};

// Host memory that all runs share. The weights go before the ledger that counts them.
struct SharedHostMemory {
  std::shared_ptr<Ledger> host_ledger;        // nullptr: it has no budget
  std::uint64_t pinned_bytes = 0;             // that may be pinned at most
  std::unique_ptr<HostWeights> host_weights;  // nullptr until Environment::hold_weights()
};

// For tests, which look into runs or decide for them. Each may be empty; set before runs start.
struct RunHooks {
  CallPlacer place_call;  // asked instead of the plan
  OpenObserver on_open;
};

// Its parts are base classes so that they go after the devices, whose work holds leases of host
// memory.
struct Environment : NodeServices, SharedHostMemory, RunHooks {
  explicit Environment(std::uint64_t cache_bytes) : cache(cache_bytes) {}
  ~Environment() {
    // A device may keep another one's memory until its own work has passed.
    for (const RunDevice& device : devices) device.state->release_all();
    if (host_weights != nullptr) host_ledger->remove_evict_callback(host_weights.get());
    if (host_ledger != nullptr) host_ledger->remove_evict_callback(&cache);
  }

  // From here on the devices take weights from host memory with this room. REQUIRES: host_ledger is
  // there.
  void hold_weights(std::shared_ptr<HostBudget> budget) {
    const auto pins = [](const RunDevice& device) {
      return device.state->device().has_pinned() && !device.state->device().host_visible();
    };
    HostWeights::Options options{.pinned_bytes = pinned_bytes};
    options.staging_devices =
        unsigned(std::max<std::ptrdiff_t>(1, std::ranges::count_if(devices, pins)));
    // A quarter of what is pinned is for weights that pass through, and of that what the largest
    // ones take three times, for each device; more would only keep copies out.
    options.staging_bytes =
        std::min(pinned_bytes / 4, options.staging_devices * (std::uint64_t{384} << 20));
    // Eight threads fill a link to two thirds, sixteen to four fifths; with a quarter of the
    // processors nobody else is kept from working for as long as a model loads.
    const unsigned threads =
        std::min(16 * options.staging_devices, std::thread::hardware_concurrency() * 3 / 4);
    options.copiers = threads - std::min(threads, options.readers);
    host_weights = std::make_unique<HostWeights>(std::move(budget), options);
    for (const RunDevice& device : devices) {
      device.state->use_host_weights(host_weights.get());
      device.state->use_host_ledger(host_ledger);
    }
    host_ledger->on_shortage(EvictionOrder::file_bytes, host_weights.get(),
                             [this](std::uint64_t missing) { host_weights->evict(missing); });
  }

  Forecast forecast;
  DeviceService device_service;  // of `devices`, in their order
  std::vector<RunDevice>
      devices;        // install_eviction() of available_memory.h tells their ledgers what may go
  Topology topology;  // of these devices, in their order, all of them well: topology_now() of
                      // health.h asks them
  Costs costs;        // measured, or empty
  OutputCache cache;  // goes before the devices that its values lie on
  SingleFlight flights;
  CheckpointCache checkpoints;
  KeptCallNeeds kept_call_needs;
  Admission admission;
  Mutex keeping;  // of kept_models.h: the stores of weights and admission say the same
  std::unique_ptr<PersistentCache> persistent_cache;  // nullptr: nothing is kept
};

}  // namespace heddle::engine
