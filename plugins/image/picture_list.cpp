#include "plugins/image/picture_list.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace heddle::image {

std::vector<Tensor> single_pictures(const Value& list, const char* name) {
  std::vector<Tensor> singles;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Tensor batch = list.item(i).as<Tensor>();
    const Extent e = image_extent(batch.shape(), name);
    for (std::int64_t n = 0; n < e.count; ++n) singles.push_back(batch.slice(0, n, n + 1));
  }
  return singles;
}

float through_a_byte(float value) {
  const float scaled = value * 255.0f;
  return scaled > 0 ? float(std::uint8_t(std::min(scaled, 255.0f))) / 255.0f : 0.0f;
}

std::uint32_t NumpyRandom::up_to(std::uint32_t most) {
  if (most == 0) return 0;
  const std::uint32_t mask = ~0u >> std::countl_zero(most);
  std::uint32_t number = 0;
  do number = std::uint32_t(bits_()) & mask;
  while (number > most);
  return number;
}

std::vector<std::size_t> NumpyRandom::permutation(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i-- > 1;) std::swap(order[i], order[up_to(std::uint32_t(i))]);
  return order;
}

}  // namespace heddle::image
