#include "engine/files/joined_dtype.h"

#include "heddle/abi/node.h"

namespace heddle::core {
namespace {

bool is_small(DType dtype) {
  return is_block_format(dtype) || dtype == DType::f8_e4m3 || dtype == DType::f8_e5m2;
}

}  // namespace

DType joined_dtype(std::span<const TensorView* const> parts, std::int32_t use) {
  const TensorView& first = *parts.front();
  if (use == HEDDLE_USE_LINEAR && first.cast) return *first.cast;
  bool differ = false, small = false;
  for (const TensorView* part : parts) {
    differ = differ || part->dtype != first.dtype;
    small = small || is_small(part->dtype);
  }
  return differ && small ? DType::f32 : first.dtype;
}

}  // namespace heddle::core
