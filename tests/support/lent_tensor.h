// A tensor of the test's own, as DLPack hands it over; it counts how often it comes back.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "heddle/dlpack.h"

namespace heddle::test {

struct LentTensor {
  LentTensor(std::vector<std::int64_t> sizes, std::vector<float> data)
      : shape(std::move(sizes)), values(std::move(data)) {
    managed.dl_tensor = {values.data(),
                         {HEDDLE_DL_CPU, 0},
                         std::int32_t(shape.size()),
                         {HEDDLE_DL_FLOAT, 32, 1},
                         shape.data(),
                         nullptr,
                         0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) {
      ++static_cast<LentTensor*>(self->manager_ctx)->back_;
    };
  }
  LentTensor(const LentTensor&) = delete;

  DLManagedTensor* lend() { return &managed; }
  int given_back() const { return back_; }

  std::vector<std::int64_t> shape;
  std::vector<float> values;
  DLManagedTensor managed{};

 private:
  std::atomic<int> back_{0};
};

}  // namespace heddle::test
