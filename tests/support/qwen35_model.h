// Tiny models of Qwen3.5 whose weights follow from their names, as
// tests/plugins/goldens/make_qwen35_goldens.py makes them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/seeded_weights.h"

namespace heddle::test {

// name: "small", which needs no config, or "large".
inline std::vector<FileTensor> qwen35_model(const std::string& name) {
  constexpr std::int64_t kFirstAdded = 275;  // tokens from there on are never written
  std::vector<FileTensor> tensors = seeded_model(name, false, "qwen35");
  for (FileTensor& tensor : tensors)
    if (tensor.name == "lm_head.weight")
      std::fill(tensor.bytes.begin() + kFirstAdded * tensor.shape[1] * 4, tensor.bytes.end(), '\0');
  return tensors;
}

}  // namespace heddle::test
