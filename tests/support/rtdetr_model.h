// The tensors of a small RT-DETR 4, seeded as plugins/goldens/make_rtdetr_goldens.py has them.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "tests/support/seeded_weights.h"

namespace heddle::test {

using engine::cat;

inline std::vector<FileTensor> rtdetr_tensors() {
  std::vector<FileTensor> tensors = seeded_model("small", true, "rtdetr");
  for (FileTensor& tensor : tensors) {
    if (!tensor.name.starts_with("backbone.") || !tensor.name.ends_with("conv.weight")) continue;
    std::vector<float> numbers(tensor.bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
    for (float& number : numbers) number *= 2;
    std::memcpy(tensor.bytes.data(), numbers.data(), tensor.bytes.size());
  }
  return tensors;
}

}  // namespace heddle::test
