// Qwen-Image 2.1 as ComfyUI's file has it: both matrices that raise an MLP in one.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/safetensors_writer.h"

namespace heddle::test {

inline void join_gates(std::vector<FileTensor>& tensors) {
  const std::string gate = ".gate_layer.weight", up = ".proj.weight";
  for (FileTensor& tensor : tensors) {
    if (!tensor.name.ends_with(gate)) continue;
    const std::string at = tensor.name.substr(0, tensor.name.size() - gate.size());
    const auto other = std::ranges::find(tensors, at + up, &FileTensor::name);
    tensor.name = at + ".gate_up.weight";
    tensor.shape[0] *= 2;
    tensor.bytes.insert(tensor.bytes.end(), other->bytes.begin(), other->bytes.end());
    other->name.clear();
  }
  std::erase_if(tensors, [](const FileTensor& tensor) { return tensor.name.empty(); });
}

}  // namespace heddle::test
