// Lists of IMAGE values, and what nodes of data sets do with single pictures: as Pillow sees them,
// in bytes. One call's thread.
#pragma once

#include <cstdint>
#include <heddle/node.hpp>
#include <random>
#include <vector>

#include "plugins/image/host_pixels.h"

namespace heddle::image {

// The pictures of all batches of a list, each a batch of one; parts of them, not copies.
std::vector<Tensor> single_pictures(const Value& list, const char* name);

// A picture's number as a byte and back: 255 x, clipped, truncated, / 255.
float through_a_byte(float value);

// NumPy's old generator (numpy.random.seed, RandomState): Mersenne Twister. One thread.
class NumpyRandom {
 public:
  // As ComfyUI's nodes seed it, by the remainder of 2^32 - 1.
  explicit NumpyRandom(std::uint64_t seed) : bits_(std::uint32_t(seed % 0xFFFFFFFFull)) {}
  // randint(0, most + 1): by rejection of what exceeds it under a mask.
  std::uint32_t up_to(std::uint32_t most);
  // permutation(count).
  std::vector<std::size_t> permutation(std::size_t count);

 private:
  std::mt19937 bits_;
};

}  // namespace heddle::image
