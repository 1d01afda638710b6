// What stands behind the pointers of heddle/engine.hpp, and how the engine's errors leave it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/guarded.h"
#include "engine/base/json_value.h"
#include "engine/facade/host_hooks.h"
#include "engine/facade/passes.h"
#include "engine/plugin/devices.h"
#include "engine/resources/folders.h"
#include "engine/run/control.h"
#include "engine/run/executor.h"
#include "engine/run/output_sequencer.h"
#include "heddle/engine.hpp"

namespace heddle {

// Runs body; the engine's Error becomes an EngineError.
template <class F>
auto translate_errors(F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const engine::Error& error) {
    throw EngineError(int(error.code()), error.trail(), error.full());
  } catch (const std::bad_alloc&) {
    throw EngineError(int(engine::Code::out_of_memory), {}, "host memory is exhausted");
  }
}

engine::MemoryPolicy memory_policy_of(const EngineOptions& options);
// "flux" names every model of the family, and one model its whole name.
bool is_named(std::string_view owner, std::string_view name);
MemoryReport report_of(const engine::LedgerReport& ledger);

struct Workflow::Data {
  engine::Workflow workflow;
  std::shared_ptr<const engine::Catalog>
      catalog;  // set() asks it for declared types; nullptr: read without an engine
  // As ComfyUI's interface saves it, until an engine adopts it; nullptr: `workflow` has the nodes.
  std::shared_ptr<const engine::Json> saved;
};

// The values that a run was asked for. They lie in memory of its engine, and go with that. Any
// thread.
class FetchedValues {
 public:
  void set(const std::string& output, engine::Value value) {
    values_.lock()->by_output[output] = std::move(value);
  }
  // Calls `read` with the value; the engine stays meanwhile. Throws not_found for one that was not
  // asked for, unsupported where the engine has gone.
  template <class F>
  auto read(std::string_view output, F&& read) const {
    const auto values = values_.lock();
    return read(*find(*values, output));
  }
  void let_go();  // the engine goes

 private:
  struct Values {
    std::map<std::string, engine::Value, std::less<>> by_output;
    bool has_gone = false;
  };
  static const heddle_value* find(const Values& values, std::string_view output);
  mutable engine::Guarded<Values> values_;
};

struct Results::Data {
  engine::RunResult result;
  std::vector<Stage> stages;
  std::vector<std::string> remarks;
  engine::Json ui = engine::Json::object();
  const std::shared_ptr<FetchedValues> fetched = std::make_shared<FetchedValues>();
};

// What a run has to do where, as planned. It may be placed again before it begins.
struct PlannedWork {
  std::vector<double> busy_seconds;  // by device, without loading
  std::vector<engine::PlannedLoad> loads;
  double seconds = 0;                // of all nodes that something is known of
  std::vector<std::string> devices;  // that have at least half of what the busiest has
};

// What others look at of a run. Nothing that the run was given or made is in it: whoever looks must
// not be the one who holds that to the end.
struct RunStatus {
  engine::RunControl control;
  engine::Guarded<PlannedWork> work;
  std::atomic<double> done_seconds = 0;  // of PlannedWork::seconds
  std::atomic<bool> is_over = false;     // before its outcome is there
  void end() {
    is_over = true;
    is_over.notify_all();
  }
};

struct Engine::Data {
  explicit Data(EngineOptions options);
  ~Data();
  EngineOptions options;
  const HostHooks hooks;  // goes after all that logs and allocates
  engine::LoadedPlugins plugins;
  std::unique_ptr<engine::Folders> folders;
  std::unique_ptr<engine::Environment> environment;
  std::mutex mutex;
  std::vector<std::weak_ptr<RunStatus>> runs;  // guarded by mutex
  std::vector<std::shared_ptr<RunStatus>> runs_under_way();
  std::mutex placing;  // before `mutex`: of runs that begin, one is placed at a time
  std::atomic<std::uint64_t> begun = 0;                                // runs that have been placed
  engine::Guarded<std::vector<std::weak_ptr<FetchedValues>>> fetched;  // of runs that are over
  void remember(const std::shared_ptr<FetchedValues>& values);
  std::map<std::uint64_t, std::weak_ptr<engine::OutputSequencer>>
      sequencers;          // by run; guarded by mutex
  bool is_tuning = false;  // guarded by mutex
  engine::FileHashes own_hashes{std::filesystem::path()};
  engine::FileHashes& file_hashes() {
    return environment->persistent_cache ? environment->persistent_cache->hashes : own_hashes;
  }
  std::jthread housekeeping;
  void start_housekeeping();
  void unload_idle();
  // As Engine::unload(); throws cancelled where it waits when `stop` says so.
  std::uint64_t unload(std::string_view device, std::string_view model,
                       const std::stop_token& stop);
  // Gives devices back what nobody uses, where no run but this one is there.
  void unload_where_idle(const RunStatus& run);
  void finish_drains() noexcept;  // as far as runs have let go of draining devices

  engine::Bound bind(const Workflow::Data& flow, const engine::GivenValues& given = {}) const;
  engine::DeviceLoad device_load(
      const RunStatus* but = nullptr);  // what runs still have to do, but for those that
                                        // wait to write
  // Where `next` stands in the row of `run`, which may be long over. With the mutex held.
  void write_after(std::uint64_t run, const std::shared_ptr<engine::OutputSequencer>& next);
  PlannedWork planned_work(const engine::Plan& plan) const;
  std::string memory_name(std::uint32_t memory) const;  // of Environment::admission
  Ready prepare(const Workflow::Data& flow,
                Asked asked) const;  // throws every problem, a line each
  static const std::shared_ptr<const Workflow::Data>& data_of(const Workflow& workflow) {
    return workflow.data_;
  }
  // For people, who want to see what lacks where. Takes the tensors.
  Ready prepare_to_show(const std::shared_ptr<const Workflow::Data>& flow, Inputs inputs,
                        bool must_fit = true) const;
};

// How often a run has begun again. For its own thread.
struct Restarts {
  unsigned count = 0;
  unsigned plans = 0;  // made because a device of the one before was not to be used any more
  std::string why;
  std::set<std::uint32_t> failed_devices;   // that had failed it
  std::set<std::uint32_t> crowded_devices;  // that had no room for it
  engine::FinishedOutputs finished;         // of the last try
  bool is_alone = false;  // before those that have come later, and beside nobody on its devices
};

// What a run has done, and goes on from.
struct RunSoFar {
  engine::SavedRun saved;                                  // when it has given back what it held
  std::shared_ptr<const engine::CheckpointContent> begun;  // in another process; or nullptr
  // What it has told of, for checkpoints.
  struct Told {
    std::vector<std::string> files;
    std::map<std::string, std::string> ui;  // by node
  };
  engine::Guarded<Told> told;
  std::shared_ptr<Results::Data> results;  // for its own thread
};

struct Run::Data {
  std::uint64_t id = 0;
  const std::shared_ptr<RunStatus> status = std::make_shared<RunStatus>();
  std::shared_ptr<engine::OutputSequencer> sequencer =
      std::make_shared<engine::OutputSequencer>(status->control);
  std::shared_ptr<const Workflow::Data> flow;
  engine::GivenValues given;
  Restarts restarts;
  Ready ready;  // the run's own thread empties it before the outcome is there
  RunSoFar so_far;
  std::optional<engine::Admission::Ticket> ticket;  // goes before what its needs are counted from
  StartOptions options;
  bool has_checkpoints() const { return !options.checkpoint.empty() || so_far.begun != nullptr; }
  std::shared_future<Results> outcome;
  std::jthread thread;
  ~Data() {
    status->control.cancel();  // the thread is joined after this
    if (!thread.joinable()) sequencer->end();
  }
};

}  // namespace heddle
