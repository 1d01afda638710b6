// HostTensor: a strided view with its memory, for inputs and expected outputs. The memory has guard
// bytes on both sides, and gaps where the view is a slice; poison() fills all of it with ones (a
// NaN in every float type), and untouched_outside() tells whether anything but the view's elements
// was written since. Of block formats there are row-major tensors only, and their elements are
// neither read nor set one by one. Owned by a case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "heddle/abi/device.h"

namespace heddle::conformance {

using Shape = std::vector<std::int64_t>;

class HostTensor {
 public:
  HostTensor() = default;
  // Row-major.
  HostTensor(heddle_dtype dtype, Shape shape);
  // Part of a larger row-major tensor: `margin` unused elements before and after each row of the
  // last axis. On the device the view's strides are the same.
  static HostTensor slice(heddle_dtype dtype, Shape shape, std::int64_t margin);
  // Axes in another order in memory: axis i of the view is axis order[i] of a row-major tensor.
  static HostTensor permuted(heddle_dtype dtype, Shape shape, std::vector<int> order);

  const heddle_tensor_info& info() const { return info_; }
  std::int64_t count() const;
  // The whole memory, guards and all, and where the first element lies in it.
  std::vector<std::byte>& memory() { return memory_; }
  const std::vector<std::byte>& memory() const { return memory_; }
  std::size_t origin() const { return origin_; }

  // Element number i in row-major order of the shape, as double; integers are exact up to 2^53.
  double get(std::int64_t i) const;
  void set(std::int64_t i, double value);

  void poison();
  bool untouched_outside() const;

  // The same elements, row-major, in the bytes of the dtype.
  std::vector<std::byte> elements() const;
  // The items [first, first + n) along axis 0, copied into a row-major tensor.
  HostTensor items(std::int64_t first, std::int64_t n) const;

 private:
  std::size_t byte_of(std::int64_t i) const;
  void allocate(std::int64_t elements);

  heddle_tensor_info info_{};
  std::vector<std::byte> memory_;
  std::size_t origin_ = 0;
};

}  // namespace heddle::conformance
