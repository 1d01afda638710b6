// Values as the bytes of a safetensors file: the tensors as its tensors, named by their number, and
// in its metadata what stands around them, as JSON:
//
//   null, true, 5, 0.5, "text"    themselves
//   [ ... ]                       a list
//   {"record": [["key", ...]]}    a record, its fields in their order
//   {"tensor": 3}                 the tensor "3"
//
// and a checksum of all of the file. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor/value.h"

namespace heddle::engine {

// `name`: what the values are kept under, told by the file itself. Tensors are read from host
// memory. Nothing for what no file can hold: models, objects, tensors in a device's private layout.
// REQUIRES: every tensor is readable by the host, and finished.
std::optional<std::string> write_values(std::span<const Value> values, std::string_view name);

// Makes tensors in host memory; empty: make_host_tensor().
using MakeTensor = std::function<Tensor(const heddle_tensor_info&)>;

// The values, their tensors copied to what `make` gives. Throws invalid_argument, with `file_name`,
// for bytes that are damaged or of other values than `name`.
std::vector<Value> read_values(std::span<const std::byte> file, std::string_view name,
                               std::string_view file_name, const MakeTensor& make = {});

}  // namespace heddle::engine
