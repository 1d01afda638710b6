// Tensors between Python and the engine, by DLPack: neither way copies one.
#pragma once

#include <nanobind/nanobind.h>
#include <heddle/engine.hpp>

#include <memory>
#include <utility>

namespace heddle_python {

namespace nb = nanobind;

// A tensor in host memory, row-major. Its memory lives until neither this nor anything that was
// made of it by DLPack is left; neither needs the engine.
struct Tensor {
  std::shared_ptr<DLManagedTensor> managed;
};

// Takes what Results::tensor() gives.
Tensor own_tensor(DLManagedTensor* tensor);
// A copy of `height` rows of `width` pixels of three bytes.
Tensor picture_tensor(const std::uint8_t* pixels, unsigned width, unsigned height);

// For one call: what Python gives for inputs, by NODE.INPUT. Tensors are taken of whatever has
// __dlpack__. Those that the engine has not taken are given back when it goes.
class GivenInputs {
 public:
  explicit GivenInputs(const nb::dict& inputs);
  GivenInputs(const GivenInputs&) = delete;
  ~GivenInputs() { give_back(); }
  heddle::Inputs take() { return std::exchange(inputs_, {}); }

 private:
  void give_back();
  void add(const std::string& name, nb::handle value);
  heddle::Inputs inputs_;
};

void bind_tensor(nb::module_& module);

}  // namespace heddle_python
