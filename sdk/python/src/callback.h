// What calls of the engine do with Python's lock (the GIL): they give it up while they run, because
// the engine's threads take it for callbacks.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <utility>

namespace heddle_python {

namespace nb = nanobind;

// Threads of Python's that are in a call of the engine, or about to come back from one. A thread
// that came back to an interpreter which is gone would end the process: exit waits until there is
// none.
inline std::atomic<int> calls_under_way{0};

struct CallUnderWay {
  CallUnderWay() { ++calls_under_way; }
  CallUnderWay(const CallUnderWay&) = delete;
  ~CallUnderWay() { --calls_under_way; }
};
// For the time that it lives Python's other threads run.
class Unlocked {
  CallUnderWay call_;  // goes last: when the lock is held again
  nb::gil_scoped_release released_;
};

// A function of Python's that the engine's threads call. Goes in any thread.
class Callback {
 public:
  explicit Callback(nb::object function) : function_(std::move(function)) {}
  Callback(const Callback&) = delete;
  ~Callback() {
    if (!function_.is_valid()) return;
    if (!Py_IsInitialized()) {
      function_.release();  // nobody is left who could free it
      return;
    }
    const nb::gil_scoped_acquire locked;
    function_.reset();
  }
  // With the lock held. What it raises goes to sys.unraisablehook: nobody waits for it here.
  template <typename... Arguments>
  void call(Arguments&&... arguments) {
    const nb::object function = function_;
    if (!function.is_valid()) return;
    const Inside inside;
    try {
      function(std::forward<Arguments>(arguments)...);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable(function);
    }
  }
  // Of this thread: whether it is in a call of one.
  static bool is_inside() { return depth_ > 0; }
  void clear() { function_.reset(); }
  PyObject* function() const { return function_.ptr(); }

 private:
  struct Inside {
    Inside() { ++depth_; }
    ~Inside() { --depth_; }
  };
  static inline thread_local int depth_ = 0;
  nb::object function_;
};

}  // namespace heddle_python
