#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <tuple>

#include "engine.h"
#include "tensor.h"

namespace heddle_python {

namespace {

using Clock = std::chrono::steady_clock;

heddle::Run begun(const Run& self) {
  if (!self.state->run) throw heddle::EngineError(1, {}, "this run has not begun");
  return *self.state->run;
}

// Python's own signals (Ctrl-C) are looked for so often.
constexpr std::chrono::milliseconds kLook{100};

// Nothing when the time was up first. timeout: seconds.
std::optional<heddle::Results> wait(Run& self, std::optional<double> timeout) {
  heddle::Run run = begun(self);
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(std::min(timeout.value_or(1e8), 1e8)));
  for (bool is_over = false; !is_over;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    {
      const Unlocked unlocked;
      is_over = run.wait_for(std::clamp(left, std::chrono::milliseconds(0), kLook));
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!is_over && left <= kLook) return std::nullopt;
  }
  // Nobody is told anything any more. The function may have this run, which has the function.
  if (self.state->observer != nullptr) self.state->observer->clear();
  const Unlocked unlocked;
  return run.wait();
}

// Calls what takes locks of the engine's.
template <void (heddle::Run::*method)()>
void act(Run& self) {
  if (self.state->engine == nullptr) return;  // closed: it is over
  heddle::Run run = begun(self);
  const Unlocked unlocked;
  (run.*method)();
}

// The garbage collector sees through a run to the function that it calls, which may lead back to
// it.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const Run& run = *nb::inst_ptr<Run>(self);
  if (run.state != nullptr && run.state->observer != nullptr)
    Py_VISIT(run.state->observer->function());
  return 0;
}
int clear(PyObject* self) {
  const Run& run = *nb::inst_ptr<Run>(self);
  if (run.state != nullptr && run.state->observer != nullptr) run.state->observer->clear();
  return 0;
}
PyType_Slot kSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(clear)},
                        {0, nullptr}};

std::vector<std::tuple<std::string, std::string, double, bool, double, double>> stages(
    const heddle::Results& results) {
  std::vector<std::tuple<std::string, std::string, double, bool, double, double>> all;
  for (const heddle::Stage& s : results.stages())
    all.emplace_back(s.node, s.class_type, s.seconds, s.cached, s.planned_seconds,
                     s.planned_load_seconds);
  return all;
}

Tensor tensor(const heddle::Results& results, const std::string& output, const std::string& field) {
  const Unlocked unlocked;
  return own_tensor(results.tensor(output, field));
}

}  // namespace

void let_go(std::shared_ptr<RunState> state) {
  if (state == nullptr) return;
  if (!Callback::is_inside()) {
    const Unlocked unlocked;
    state.reset();
    return;
  }
  std::thread([state = std::move(state), under_way = std::make_unique<CallUnderWay>()]() mutable {
    state.reset();
  }).detach();
}

void bind_run(nb::module_& module) {
  nb::class_<heddle::Results>(module, "Results")
      .def("files", &heddle::Results::files)
      .def("stages", &stages)
      .def("remarks", &heddle::Results::remarks)
      .def("ui", &heddle::Results::ui)
      .def(
          "text",
          [](const heddle::Results& self, const std::string& output) { return self.text(output); },
          nb::call_guard<Unlocked>())
      .def("tensor", &tensor);
  nb::class_<Run>(module, "Run", nb::type_slots(kSlots))
      .def_prop_ro("id", [](Run& self) { return begun(self).id(); })
      .def("wait", &wait, nb::arg("timeout").none())
      .def("cancel", &act<&heddle::Run::cancel>)
      .def("pause", &act<&heddle::Run::pause>)
      .def("pause_and_release", &act<&heddle::Run::pause_and_release>)
      .def("resume", &act<&heddle::Run::resume>)
      .def("devices", [](Run& self) { return begun(self).devices(); });
}

}  // namespace heddle_python
