// heddle._native: the C++ interface (heddle/engine.hpp) for the package around it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "engine.h"
#include "tensor.h"

namespace heddle_python {

namespace {

// The package has the classes; it makes one of what the engine says.
void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const heddle::EngineError& e) {
    try {
      nb::list trail;
      for (const std::string& part : e.trail()) trail.append(text_of(part));
      const nb::object error = nb::module_::import_("heddle._errors")
                                   .attr("error_of")(e.code(), text_of(e.what()), trail);
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    } catch (nb::python_error& failed) {
      failed.restore();
    }
  }
}

}  // namespace

NB_MODULE(_native, module) {
  // A daemon thread that waited for a run when the program ended has not returned from its
  // function, and has what that had.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);
  bind_tensor(module);
  bind_engine(module);
  bind_run(module);
  // For exit: see callback.h.
  module.def("calls_under_way", [] { return calls_under_way.load(); });
}

}  // namespace heddle_python
