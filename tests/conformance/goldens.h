// The cases of goldens.safetensors, which make_goldens.py writes with PyTorch. Pure function.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "test_device.h"

namespace heddle::conformance {

// Each case with its inputs; its outputs hold the expected values. Throws std::runtime_error when
// the file is not one.
std::vector<OpCase> read_goldens(const std::string& path);

// The tensors of such a file by name. Throws the same.
std::map<std::string, HostTensor> read_tensors(const std::string& path);

}  // namespace heddle::conformance
