// LoRA files of a test, and the same merged into a model's own tensors here.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "tests/support/seeded_weights.h"

namespace heddle::test {

inline std::vector<float> floats_of(const FileTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// A module of a LoRA: what it is called there, with the ends of its factors' names, and the rows of
// a model's tensor that it changes.
struct LoraTarget {
  std::string name, up, down;
  std::string tensor;
  std::int64_t first = 0, rows = 0;
};

// Adds `strength` times up * down to rows from `first` on.
inline void merge_product(FileTensor& tensor, std::int64_t first, const FileTensor& up,
                          const FileTensor& down, float strength) {
  std::vector<float> values = floats_of(tensor);
  const std::vector<float> u = floats_of(up), d = floats_of(down);
  const std::int64_t columns = tensor.shape[1], rank = down.shape[0];
  for (std::int64_t row = 0; row < up.shape[0]; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      for (std::int64_t k = 0; k < rank; ++k)
        values[std::size_t((first + row) * columns + column)] +=
            strength * u[std::size_t(row * rank + k)] * d[std::size_t(k * columns + column)];
  tensor.bytes = bytes_of_floats(values);
}

inline FileTensor& tensor_named(std::vector<FileTensor>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &FileTensor::name);
  BOOST_TEST_REQUIRE((found != tensors.end()), name);
  return *found;
}

// The LoRA of these modules, of rank 2, merged into `model` on the way.
inline std::vector<FileTensor> merged_lora(std::vector<FileTensor>& model,
                                           const std::vector<LoraTarget>& targets, float strength) {
  std::vector<FileTensor> factors;
  for (const LoraTarget& target : targets) {
    FileTensor& tensor = tensor_named(model, target.tensor);
    const FileTensor up = seeded_tensor(target.name + target.up, {target.rows, 2}),
                     down = seeded_tensor(target.name + target.down, {2, tensor.shape[1]});
    merge_product(tensor, target.first, up, down, strength);
    factors.push_back(up), factors.push_back(down);
  }
  return factors;
}

}  // namespace heddle::test
