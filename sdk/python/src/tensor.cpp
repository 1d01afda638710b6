#include "tensor.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <utility>

#include "callback.h"

namespace heddle_python {

namespace {

// DLPack 1.0: the struct that a reader asks for with max_version, which can say that a tensor may
// be written to.
struct VersionedTensor {
  std::uint32_t major, minor;
  void* manager_ctx;
  void (*deleter)(VersionedTensor* self);
  std::uint64_t flags;  // 1: read-only, 2: copied
  DLTensor dl_tensor;
};
constexpr std::uint64_t kCopied = 2;

constexpr const char* kName = "dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";

template <typename Managed>
void free_managed(Managed* self) {
  delete static_cast<std::shared_ptr<DLManagedTensor>*>(self->manager_ctx);
  delete self;
}

// Of a capsule that nobody has taken: whoever takes one renames it.
template <typename Managed>
void free_capsule(PyObject* capsule) {
  for (const char* name : {kName, kVersionedName})
    if (PyCapsule_IsValid(capsule, name) != 0)
      free_managed(static_cast<Managed*>(PyCapsule_GetPointer(capsule, name)));
}

template <typename Managed>
nb::object make_capsule(Managed managed, const std::shared_ptr<DLManagedTensor>& from,
                        const char* name) {
  managed.dl_tensor = from->dl_tensor;
  managed.manager_ctx = new std::shared_ptr<DLManagedTensor>(from);
  managed.deleter = free_managed<Managed>;
  auto* const made = new Managed(managed);
  PyObject* const capsule = PyCapsule_New(made, name, free_capsule<Managed>);
  if (capsule == nullptr) {
    free_managed(made);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

// A tensor with a buffer of its own.
struct Buffer {
  DLManagedTensor managed{};
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;
};
Tensor make_buffer(std::vector<std::int64_t> shape, DLDataType type, const void* data,
                   std::size_t bytes) {
  auto buffer = std::make_shared<Buffer>();
  const auto* const first = static_cast<const std::uint8_t*>(data);
  buffer->bytes.assign(first, first + bytes);
  buffer->shape = std::move(shape);
  buffer->managed.dl_tensor = {buffer->bytes.data(),
                               {HEDDLE_DL_CPU, 0},
                               std::int32_t(buffer->shape.size()),
                               type,
                               buffer->shape.data(),
                               nullptr,
                               0};
  return {std::shared_ptr<DLManagedTensor>(buffer, &buffer->managed)};
}

std::size_t byte_count(const DLTensor& t) {
  std::size_t count = t.dtype.bits / 8u * std::size_t(t.dtype.lanes);
  for (std::int32_t i = 0; i < t.ndim; ++i) count *= std::size_t(t.shape[i]);
  return count;
}

nb::object to_dlpack(const Tensor& self, nb::object, std::optional<std::pair<int, int>> max_version,
                     std::optional<std::pair<int, int>> dl_device, std::optional<bool> copy) {
  if (dl_device && dl_device->first != HEDDLE_DL_CPU) {
    PyErr_SetString(PyExc_BufferError, "the tensor is in host memory: take it there, then move it");
    throw nb::python_error();
  }
  Tensor given = self;
  if (copy.value_or(false)) {
    const DLTensor& t = self.managed->dl_tensor;
    given = make_buffer({t.shape, t.shape + t.ndim}, t.dtype,
                        static_cast<const char*>(t.data) + t.byte_offset, byte_count(t));
  }
  if (max_version && max_version->first >= 1)
    return make_capsule(
        VersionedTensor{.major = 1, .minor = 0, .flags = copy.value_or(false) ? kCopied : 0},
        given.managed, kVersionedName);
  return make_capsule(DLManagedTensor{}, given.managed, kName);
}

std::string type_name(const Tensor& tensor) {
  const DLDataType type = tensor.managed->dl_tensor.dtype;
  switch (type.code) {
    case HEDDLE_DL_INT:
      return "int" + std::to_string(type.bits);
    case HEDDLE_DL_UINT:
      return "uint" + std::to_string(type.bits);
    case HEDDLE_DL_FLOAT:
      return "float" + std::to_string(type.bits);
    case HEDDLE_DL_BFLOAT:
      return "bfloat16";
    case HEDDLE_DL_BOOL:
      return "bool";
    case HEDDLE_DL_FLOAT8_E4M3FN:
      return "float8_e4m3fn";
    case HEDDLE_DL_FLOAT8_E5M2:
      return "float8_e5m2";
    default:
      return "unknown";
  }
}

nb::tuple shape_of(const Tensor& tensor) {
  const DLTensor& t = tensor.managed->dl_tensor;
  nb::list sizes;
  for (std::int32_t i = 0; i < t.ndim; ++i) sizes.append(t.shape[i]);
  return nb::tuple(sizes);
}

// Of another library: what frees it there may need Python's lock, and the engine's threads have
// none.
struct Foreign {
  DLManagedTensor managed{};
  DLManagedTensor* theirs = nullptr;
  static void free(DLManagedTensor* self) {
    auto* const foreign = static_cast<Foreign*>(self->manager_ctx);
    if (foreign->theirs->deleter != nullptr && Py_IsInitialized()) {
      const nb::gil_scoped_acquire locked;
      const Callback::Inside inside;
      foreign->theirs->deleter(foreign->theirs);
    }
    delete foreign;
  }
};

DLManagedTensor* take_tensor(nb::handle value) {
  const nb::object capsule = value.attr("__dlpack__")();
  auto* const theirs = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  if (theirs == nullptr || PyCapsule_SetName(capsule.ptr(), "used_dltensor") != 0)
    throw nb::python_error();
  auto* const foreign = new Foreign;
  foreign->theirs = theirs;
  foreign->managed = {theirs->dl_tensor, foreign, Foreign::free};
  return &foreign->managed;
}

}  // namespace

Tensor own_tensor(DLManagedTensor* tensor) {
  return {std::shared_ptr<DLManagedTensor>(tensor, [](DLManagedTensor* t) {
    if (t->deleter != nullptr) t->deleter(t);
  })};
}

Tensor picture_tensor(const std::uint8_t* pixels, unsigned width, unsigned height) {
  return make_buffer({height, width, 3}, {HEDDLE_DL_UINT, 8, 1}, pixels,
                     std::size_t(width) * height * 3);
}

GivenInputs::GivenInputs(const nb::dict& inputs) {
  try {
    for (const auto [name, value] : inputs) add(nb::cast<std::string>(name), value);
  } catch (...) {
    give_back();
    throw;
  }
}

void GivenInputs::add(const std::string& name, nb::handle value) {
  heddle::InputValue& input = inputs_[name];
  if (PyBool_Check(value.ptr()) != 0) {
    input = value.ptr() == Py_True;
  } else if (nb::isinstance<nb::str>(value)) {
    input = nb::cast<std::string>(value);
  } else if (PyFloat_Check(value.ptr()) != 0) {
    input = PyFloat_AS_DOUBLE(value.ptr());
  } else if (nb::isinstance<nb::dict>(value)) {
    auto& record = input.emplace<std::map<std::string, DLManagedTensor*>>();
    for (const auto [field, tensor] : nb::borrow<nb::dict>(value))
      record.emplace(nb::cast<std::string>(field), nullptr).first->second = take_tensor(tensor);
  } else if (nb::hasattr(value, "__dlpack__")) {
    input = take_tensor(value);
  } else if (PyIndex_Check(value.ptr()) != 0) {
    input = nb::cast<std::int64_t>(nb::int_(value));
  } else {
    throw nb::type_error(("the input '" + name +
                          "' is neither a bool, an int, a float, a str, a tensor (__dlpack__), nor "
                          "a dict of tensors")
                             .c_str());
  }
}

void GivenInputs::give_back() {
  const auto free = [](DLManagedTensor* tensor) {
    if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
  };
  for (auto& [name, input] : std::exchange(inputs_, {})) {
    if (DLManagedTensor** const tensor = std::get_if<DLManagedTensor*>(&input)) free(*tensor);
    if (auto* const record = std::get_if<std::map<std::string, DLManagedTensor*>>(&input))
      for (const auto& [field, tensor] : *record) free(tensor);
  }
}

void bind_tensor(nb::module_& module) {
  nb::class_<Tensor>(module, "Tensor")
      .def_prop_ro("shape", &shape_of)
      .def_prop_ro("dtype", &type_name)
      .def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none())
      .def("__dlpack_device__", [](const Tensor&) { return std::pair(int(HEDDLE_DL_CPU), 0); })
      .def("__repr__", [](const Tensor& self) {
        return "heddle.Tensor(shape=" + std::string(nb::repr(shape_of(self)).c_str()) +
               ", dtype='" + type_name(self) + "')";
      });
}

}  // namespace heddle_python
