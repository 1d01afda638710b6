// A plugin that runs in workers: one for each run that calls its nodes, so that a crash is of one
// run alone. Idle workers wait for the next run. Any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/isolate/description.h"
#include "engine/isolate/worker_process.h"
#include "heddle/isolation.hpp"

namespace heddle::engine {

class IsolatedNode;

// What its workers are.
struct WorkerKind {
  WorkerSettings settings;  // but for what is told when one starts: log level and engine
  double call_seconds = 0;  // see heddle::Isolation
  // Drivers reserve more addresses than limits of a worker's memory leave.
  bool may_use_devices = false;
};
// heddle_worker. Throws not_found where that is not there.
WorkerKind native_worker(const std::filesystem::path& plugin, const Isolation& isolation);

class IsolatedPlugin {
 public:
  // Starts a first worker. Throws what the plugin is refused for.
  IsolatedPlugin(std::filesystem::path path, WorkerKind kind, std::shared_ptr<Spawner> spawner);
  ~IsolatedPlugin();
  IsolatedPlugin(const IsolatedPlugin&) = delete;

  const std::string& id() const { return id_; }
  const std::string& version() const { return version_; }
  double most_seconds() const { return kind_.call_seconds; }
  bool may_use_devices() const { return kind_.may_use_devices; }
  std::vector<const void*> nodes() const;  // of heddle_node_desc; as long as this

  // A worker for a call, whose count of calls it raises: `wanted`, or that of the run, or one that
  // nobody has. `run`: 0 for a call that belongs to none.
  std::shared_ptr<WorkerProcess> worker_for(std::uint64_t run,
                                            std::shared_ptr<WorkerProcess> wanted);

 private:
  static constexpr std::size_t kMostIdle = 8;
  using Workers = std::vector<std::shared_ptr<WorkerProcess>>;
  std::shared_ptr<WorkerProcess> start_worker() const;

  const std::filesystem::path path_;
  const WorkerKind kind_;
  const std::shared_ptr<Spawner> spawner_;
  std::string id_, version_;
  std::vector<std::unique_ptr<IsolatedNode>> nodes_;
  Guarded<Workers> workers_;
};

}  // namespace heddle::engine
