#include "engine.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <string>
#include <thread>
#include <tuple>

#include "tensor.h"

namespace heddle_python {

namespace {

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(std::int64_t(seconds * 1000));
}

std::string plan(Engine& self, const heddle::Workflow& flow, const nb::dict& inputs,
                 const std::string& form) {
  GivenInputs given(inputs);
  return self.unlocked([&](heddle::Engine& engine) {
    if (form == "json") return engine.plan_json(flow, given.take());
    if (form == "dot") return engine.plan_dot(flow, given.take());
    return engine.plan(flow, given.take());
  });
}

std::tuple<std::vector<std::string>, std::vector<std::string>, std::vector<std::string>> check(
    Engine& self, const heddle::Workflow& flow, const nb::dict& inputs) {
  GivenInputs given(inputs);
  heddle::Engine::Problems problems =
      self.unlocked([&](heddle::Engine& engine) { return engine.check(flow, given.take()); });
  return {std::move(problems.errors), std::move(problems.warnings), std::move(problems.outputs)};
}

nb::list plugins(Engine& self) {
  nb::list all;
  for (const heddle::PluginInfo& plugin :
       self.unlocked([](heddle::Engine& engine) { return engine.plugins(); })) {
    nb::dict brings, info;
    for (const heddle::PluginInfo::Kind& kind : plugin.brings)
      brings[kind.name.c_str()] = kind.items;
    info["id"] = plugin.id;
    info["version"] = plugin.version;
    info["path"] = plugin.path;
    info["refused"] = plugin.refused;
    info["brings"] = brings;
    all.append(info);
  }
  return all;
}

bool drain(Engine& self, const std::string& device, std::optional<double> timeout) {
  return self.unlocked([&](heddle::Engine& engine) {
    return engine.drain(device, timeout ? std::optional(milliseconds(*timeout)) : std::nullopt);
  });
}

}  // namespace

Engine::Engine(const nb::dict& options) {
  heddle::EngineOptions made = engine_options(options, log_);
  const Unlocked unlocked;
  engine_ = std::make_shared<heddle::Engine>(std::move(made));
}

// Without close() its runs, which have it too, go on.
Engine::~Engine() {
  if (!Callback::is_inside()) {
    const Unlocked unlocked_here;
    engine_.reset();
    return;
  }
  // It would wait for this thread.
  std::thread([engine = std::move(engine_),
               under_way = std::make_unique<CallUnderWay>()]() mutable {
    engine.reset();
  }).detach();
}

std::shared_ptr<heddle::Engine> Engine::current() const {
  if (engine_ == nullptr)
    throw heddle::EngineError(1, {}, "this Engine is closed: make another one");
  return engine_;
}

template <typename Begin>
std::unique_ptr<Run> Engine::begin(const nb::dict& options, Begin&& begin) {
  auto run = std::make_unique<Run>(std::make_shared<RunState>());
  if (options.contains("on_event") && !options["on_event"].is_none())
    run->state->observer = std::make_shared<Callback>(nb::borrow(options["on_event"]));
  heddle::StartOptions made = start_options(options, run->state->observer);
  run->state->engine = current();
  // Before the lock is given up: close() in another thread has to know of it.
  std::erase_if(runs_, [](const std::weak_ptr<RunState>& other) { return other.expired(); });
  runs_.push_back(run->state);
  heddle::Run started =
      unlocked([&](heddle::Engine& engine) { return begin(engine, std::move(made)); });
  if (run->state->engine == nullptr) {  // closed meanwhile
    const Unlocked unlocked_here;
    started.cancel();
  }
  run->state->run = std::move(started);
  return run;
}

std::unique_ptr<Run> Engine::start(const heddle::Workflow& workflow, const nb::dict& inputs,
                                   const nb::dict& options) {
  GivenInputs given(inputs);
  return begin(options, [&](heddle::Engine& engine, heddle::StartOptions made) {
    made.inputs = given.take();
    return engine.start(workflow, std::move(made));
  });
}

std::unique_ptr<Run> Engine::resume(const heddle::RunCheckpoint& checkpoint,
                                    const nb::dict& options) {
  return begin(options, [&](heddle::Engine& engine, heddle::StartOptions made) {
    return engine.resume(checkpoint, std::move(made));
  });
}

void Engine::close() {
  std::vector<std::shared_ptr<RunState>> runs;
  std::vector<heddle::Run> begun;
  std::vector<std::shared_ptr<heddle::Engine>> owners{std::exchange(engine_, nullptr)};
  for (const std::weak_ptr<RunState>& weak : std::exchange(runs_, {})) {
    std::shared_ptr<RunState> state = weak.lock();
    if (state == nullptr) continue;
    owners.push_back(std::exchange(state->engine, nullptr));
    if (state->run) begun.push_back(*state->run);
    runs.push_back(std::move(state));
  }
  {
    const Unlocked unlocked;
    for (heddle::Run& run : begun) run.cancel();
    for (heddle::Run& run : begun)
      while (!run.wait_for(std::chrono::hours(1))) {
      }
    begun.clear();
    owners.clear();
  }
  for (std::shared_ptr<RunState>& state : runs) {
    if (state->observer != nullptr) state->observer->clear();
    let_go(std::move(state));
  }
}

void bind_engine(nb::module_& module) {
  nb::class_<heddle::Workflow>(module, "Workflow")
      .def("set", [](heddle::Workflow& self, const std::string& input,
                     const std::string& value) { self.set(input, value); })
      .def("place", [](heddle::Workflow& self, const std::string& node,
                       const std::string& device) { self.place(node, device); })
      .def("parallel", [](heddle::Workflow& self, const std::string& node,
                          const std::string& mode) { self.parallel(node, mode); })
      .def("only",
           [](heddle::Workflow& self, const std::vector<std::string>& nodes) { self.only(nodes); })
      .def("text", &heddle::Workflow::text)
      .def("copy", [](const heddle::Workflow& self) { return heddle::Workflow(self); });
  nb::class_<heddle::RunCheckpoint>(module, "RunCheckpoint")
      .def_static("load", &heddle::RunCheckpoint::load, nb::call_guard<Unlocked>())
      .def("note", &heddle::RunCheckpoint::note)
      .def("workflow", &heddle::RunCheckpoint::workflow);
  nb::class_<Engine>(module, "Engine")
      .def(nb::init<const nb::dict&>())
      .def("load",
           [](Engine& self, const std::filesystem::path& path) {
             return self.unlocked([&](heddle::Engine& e) { return e.load(path); });
           })
      .def("parse",
           [](Engine& self, const std::string& json, const std::string& name) {
             return self.unlocked([&](heddle::Engine& e) { return e.parse(json, name); });
           })
      .def("convert",
           [](Engine& self, const heddle::Workflow& flow,
              const std::vector<std::string>& object_info) {
             return self.unlocked([&](heddle::Engine& e) { return e.convert(flow, object_info); });
           })
      .def("check", &check)
      .def("plan", &plan)
      .def("least_memory",
           [](Engine& self, const heddle::Workflow& flow) {
             return self.unlocked([&](heddle::Engine& e) { return e.plan_min_memory(flow, true); });
           })
      .def("start", &Engine::start)
      .def("resume", &Engine::resume)
      .def("close", &Engine::close)
      .def_prop_ro("is_closed", &Engine::is_closed)
      .def("devices_json",
           [](Engine& self) {
             return self.unlocked([](heddle::Engine& e) { return e.devices_json(); });
           })
      .def("enable",
           [](Engine& self, const std::string& device) {
             self.unlocked([&](heddle::Engine& e) { e.enable(device); });
           })
      .def("disable",
           [](Engine& self, const std::string& device) {
             self.unlocked([&](heddle::Engine& e) { e.disable(device); });
           })
      .def("drain", &drain)
      .def("unload",
           [](Engine& self, const std::string& device, const std::string& model) {
             return self.unlocked([&](heddle::Engine& e) { return e.unload(device, model); });
           })
      .def("drop_cached",
           [](Engine& self) {
             return self.unlocked([](heddle::Engine& e) { return e.drop_cached(); });
           })
      .def("plugins", &plugins)
      .def("node_types",
           [](Engine& self) {
             return self.unlocked([](heddle::Engine& e) { return e.node_types(); });
           })
      .def("object_info",
           [](Engine& self, const std::string& name) {
             return self.unlocked([&](heddle::Engine& e) { return e.object_info(name); });
           })
      .def("version", [](Engine& self) {
        return self.unlocked([](heddle::Engine& e) { return e.version(); });
      });
}

}  // namespace heddle_python
