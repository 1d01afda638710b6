// Where the rows of a product's operand lie. Constants.
#pragma once

#include <cstdint>

namespace heddle::cuda {

// A batch of evenly spaced rows, in elements.
struct Rows {
  std::int64_t batch, rows, step, jump;
};

}  // namespace heddle::cuda
