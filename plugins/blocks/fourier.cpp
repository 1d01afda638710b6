#include "plugins/blocks/fourier.h"

#include <cstddef>
#include <numbers>
#include <utility>

namespace heddle::blocks {

void fourier_transform(std::span<std::complex<double>> x) {
  const std::size_t count = x.size();
  for (std::size_t i = 1, j = 0; i < count; ++i) {
    std::size_t bit = count >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (std::size_t size = 2; size <= count; size *= 2) {
    const double angle = -2 * std::numbers::pi / double(size);
    for (std::size_t k = 0; k < size / 2; ++k) {
      const std::complex<double> turn = std::polar(1.0, angle * double(k));
      for (std::size_t at = k; at < count; at += size) {
        const std::complex<double> odd = x[at + size / 2] * turn;
        x[at + size / 2] = x[at] - odd;
        x[at] += odd;
      }
    }
  }
}

}  // namespace heddle::blocks
