// Random numbers of numpy.random.RandomState, as ComfyUI's nodes of data sets draw them: the
// Mersenne twister, and whole numbers by masking its bits until they fit. One thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace heddle::video {

class NumpyRandom {
 public:
  // The nodes bring a seed of 64 bits below 2^32 - 1.
  explicit NumpyRandom(std::uint64_t seed)
      : twister_(static_cast<std::uint32_t>(seed % 0xffffffffu)) {}

  // From 0 to most, both inclusive.
  std::uint32_t up_to(std::uint32_t most) {
    if (most == 0) return 0;
    const std::uint32_t mask = 0xffffffffu >> std::countl_zero(most);
    std::uint32_t value;
    do {
      value = static_cast<std::uint32_t>(twister_()) & mask;
    } while (value > most);
    return value;
  }

  // 0 to count - 1, in any order.
  std::vector<std::uint32_t> permutation(std::uint32_t count) {
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    for (std::uint32_t i = count; i-- > 1;) std::swap(order[i], order[up_to(i)]);
    return order;
  }

 private:
  std::mt19937 twister_;
};

}  // namespace heddle::video
