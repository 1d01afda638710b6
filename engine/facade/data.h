// What stands behind the pointers of heddle/engine.hpp, and how the engine's errors leave it.
#pragma once

#include <condition_variable>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/json_value.h"
#include "engine/facade/host_hooks.h"
#include "engine/facade/passes.h"
#include "engine/plugin/devices.h"
#include "engine/resources/folders.h"
#include "engine/run/control.h"
#include "engine/run/executor.h"
#include "engine/run/write_turn.h"
#include "heddle/engine.hpp"

namespace heddle {

// Runs body; the engine's Error becomes an EngineError.
template <class F>
auto outward(F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const core::Error& error) {
    throw EngineError(int(error.code()), error.trail(), error.full());
  } catch (const std::bad_alloc&) {
    throw EngineError(int(core::Code::out_of_memory), {}, "host memory is exhausted");
  }
}

core::MemoryPolicy memory_policy_of(const EngineOptions& options);

struct Workflow::Data {
  core::Workflow workflow;
  std::shared_ptr<const core::Catalog> catalog;  // set() asks it for declared types; nullptr: read without an engine
};

struct Results::Data {
  core::RunResult result;
  std::vector<Stage> stages;
  std::vector<std::string> remarks;
  core::Json ui = core::Json::object();
  std::map<std::string, core::Value> kept;
};

struct Engine::Data {
  explicit Data(EngineOptions options);
  ~Data();
  EngineOptions options;
  const HostHooks hooks;  // goes after all that logs and allocates
  core::LoadedPlugins plugins;
  std::unique_ptr<core::Folders> folders;
  std::unique_ptr<core::Environment> environment;
  std::mutex mutex;
  std::vector<std::weak_ptr<Run::Data>> runs;  // guarded by mutex
  std::map<std::uint64_t, std::weak_ptr<core::WriteTurn>> turns;  // by run; guarded by mutex
  bool is_tuning = false;                      // guarded by mutex
  std::jthread housekeeping;
  void start_housekeeping();
  void unload_idle();

  core::Bound bind(const Workflow::Data& flow, const core::GivenValues& given = {}) const;
  core::Crowd crowd();  // what the runs under way keep busy, but for those that wait to write
  // Where `next` stands in the row of `run`, which may be long over. With the mutex held.
  void write_after(std::uint64_t run, const std::shared_ptr<core::WriteTurn>& next);
  std::vector<double> busy_seconds(const core::Plan& plan) const;
  Ready prepare(const Workflow::Data& flow, Asked asked) const;  // throws every problem, a line each
  // For people, who want to see what lacks where. Takes the tensors.
  Ready prepare_to_show(const std::shared_ptr<const Workflow::Data>& flow, Inputs inputs, bool must_fit = true) const;
};

struct Run::Data {
  std::uint64_t id = 0;
  core::RunControl control;
  std::shared_ptr<core::WriteTurn> turn = std::make_shared<core::WriteTurn>(control);
  std::vector<double> busy_seconds;    // by device; for whoever starts another run, so not to be changed any more
  std::vector<std::string> devices;    // that have at least half of what the busiest has
  std::shared_ptr<const Workflow::Data> flow;
  Ready ready;           // the run's own thread empties it before the outcome is there
  StartOptions options;
  std::shared_future<Results> outcome;
  std::jthread thread;
  ~Data() {
    control.cancel();  // the thread is joined after this
    if (!thread.joinable()) turn->end();
  }
};

}  // namespace heddle
