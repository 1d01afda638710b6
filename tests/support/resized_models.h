// Models of seeded weights in other sizes than their goldens have, for tests that need more heads.
#pragma once

#include <map>
#include <vector>

#include "tests/support/seeded_weights.h"

namespace heddle::test {

// Each axis of a size in `sizes` has the one that it is mapped to; a tensor of other axes alone
// keeps its numbers.
inline std::vector<FileTensor> resized(std::vector<FileTensor> tensors,
                                       const std::map<std::int64_t, std::int64_t>& sizes) {
  for (FileTensor& tensor : tensors) {
    std::vector<std::int64_t> shape = tensor.shape;
    for (std::int64_t& size : shape)
      if (const auto found = sizes.find(size); found != sizes.end()) size = found->second;
    if (shape != tensor.shape) tensor = seeded_tensor(tensor.name, shape);
  }
  return tensors;
}

}  // namespace heddle::test
