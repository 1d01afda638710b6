// The names of Python that files of torch.save hold, and what they stand for here. Constant.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "engine/tensor/dtype.h"

namespace heddle::engine {

enum class PytorchRole {
  tensor,     // (storage, offset, shape, strides, ...)
  tensor_v3,  // the same, and at the index 6 its type
  parameter,  // (tensor, ...)
  size,       // (shape)
  storage,    // of a type
  untyped,    // a storage of bytes
  type,       // of elements
  idle,       // what training leaves behind; nobody looks at it
};

struct PytorchName {
  std::string_view name;
  PytorchRole role;
  std::optional<DType> dtype = {};
};

std::span<const std::string_view> pytorch_names();  // for read_pickle()

// By its index in pytorch_names(); nullptr beyond them.
const PytorchName* pytorch_name(std::size_t index);

}  // namespace heddle::engine
