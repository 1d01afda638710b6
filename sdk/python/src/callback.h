// What calls of the engine do with Python's lock (the GIL): they give it up while they run, because
// the engine's threads take it for callbacks.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <exception>
#include <memory>
#include <string_view>
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
// Messages may quote bytes of files: what is no UTF-8 is replaced.
inline nb::object text_of(std::string_view text) {
  PyObject* const made = PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "replace");
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

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
    const Inside inside;
    clear();
  }
  // With the lock held: calls the function with what `arguments_of`() makes, a tuple. What either
  // raises goes to sys.unraisablehook: nobody waits for it here.
  template <typename Make>
  void call(Make&& arguments_of) {
    const nb::object function = function_;
    if (!function.is_valid()) return;
    const Inside inside;
    try {
      function(*nb::tuple(arguments_of()));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable(function);
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
      PyErr_WriteUnraisable(function.ptr());
    }
  }
  // Of this thread: whether it is in a call of one.
  static bool is_inside() { return depth_ > 0; }
  // Freeing the function may run anything, and give up the lock: by then it is not here any more.
  void clear() { const nb::object old = std::move(function_); }
  PyObject* function() const { return function_.ptr(); }
  // While a thread of the engine's runs what Python wants: nothing may wait for that thread.
  struct Inside {
    Inside() { ++depth_; }
    Inside(const Inside&) = delete;
    ~Inside() { --depth_; }
  };

 private:
  static inline thread_local int depth_ = 0;
  nb::object function_;
};

}  // namespace heddle_python
