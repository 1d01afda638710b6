// Small models of Gemma 4 that see pictures (plugins/goldens/make_gemma4_picture_goldens.py).
#pragma once

#include <string>
#include <vector>

#include "tests/support/seeded_weights.h"

namespace heddle::test {

// With limits around matrices that cut some numbers off.
inline std::vector<FileTensor> gemma4_seeing(const std::string& model) {
  std::vector<FileTensor> tensors = seeded_model(model, false, "gemma4_pictures");
  for (FileTensor& tensor : tensors) {
    const bool is_least = tensor.name.ends_with("_min");
    if (!is_least && !tensor.name.ends_with("_max")) continue;
    const float size = 0.25f * float(2 + seeded::hash_of(tensor.name) % 8);
    tensor.bytes = bytes_of_floats({is_least ? -size : size});
  }
  return tensors;
}

}  // namespace heddle::test
