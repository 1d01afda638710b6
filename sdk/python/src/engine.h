// The engine and its runs as Python has them. The module is thin: defaults, dicts and asyncio are
// in the package around it.
#pragma once

#include <nanobind/nanobind.h>
#include <heddle/engine.hpp>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "callback.h"

namespace heddle_python {

// One run. Its members are read and changed with Python's lock held.
struct RunState {
  std::optional<heddle::Run> run;          // nothing: it is being started
  std::shared_ptr<heddle::Engine> engine;  // outlives the run; null: closed
  std::shared_ptr<Callback> observer;
};
// The run ends without Python's lock, which its threads may need for that; and on a thread that is
// not its own: the garbage collector works on whatever thread Python code runs on, an observer's,
// too.
void let_go(std::shared_ptr<RunState> state);
struct Run {
  std::shared_ptr<RunState> state;
  explicit Run(std::shared_ptr<RunState> from) : state(std::move(from)) {}
  Run(const Run&) = delete;
  // Cancels the run and waits, if it is under way.
  ~Run() { let_go(std::move(state)); }
};

class Engine {
 public:
  explicit Engine(const nb::dict& options);
  Engine(const Engine&) = delete;
  ~Engine();

  // Calls `work` with the engine, while Python's other threads run. The last owner may be this
  // call: the engine goes before the lock is taken again.
  template <typename Work>
  auto unlocked(Work&& work) {
    std::shared_ptr<heddle::Engine> engine = current();
    const Unlocked unlocked;
    const std::shared_ptr<heddle::Engine> held = std::move(engine);
    return work(*held);
  }
  std::unique_ptr<Run> start(const heddle::Workflow& workflow, const nb::dict& inputs,
                             const nb::dict& options);
  std::unique_ptr<Run> resume(const heddle::RunCheckpoint& checkpoint, const nb::dict& options);
  // Cancels its runs and waits for them.
  void close();
  bool is_closed() const { return engine_ == nullptr; }

 private:
  template <typename Begin>
  std::unique_ptr<Run> begin(const nb::dict& options, Begin&& begin);
  std::shared_ptr<heddle::Engine> current() const;
  std::shared_ptr<heddle::Engine> engine_;
  std::shared_ptr<Callback> log_;
  std::vector<std::weak_ptr<RunState>> runs_;
};

// `log`: what is called for every message, as long as this lives.
heddle::EngineOptions engine_options(const nb::dict& from, std::shared_ptr<Callback>& log);
heddle::StartOptions start_options(const nb::dict& from, const std::shared_ptr<Callback>& observer);

void bind_engine(nb::module_& module);
void bind_run(nb::module_& module);

}  // namespace heddle_python
