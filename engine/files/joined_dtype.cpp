#include "engine/files/joined_dtype.h"

#include <algorithm>

#include "heddle/abi/node.h"

namespace heddle::engine {

bool is_quantised(DType dtype) {
  return is_block_format(dtype) || dtype == DType::f8_e4m3 || dtype == DType::f8_e5m2;
}

bool is_patched_beside(const TensorView& tensor, std::int32_t use) {
  return use == HEDDLE_USE_LINEAR && is_quantised(tensor.dtype);
}

DType joined_dtype(std::span<const TensorView* const> parts, std::int32_t use) {
  const TensorView& first = *parts.front();
  if (use == HEDDLE_USE_LINEAR && first.cast) return *first.cast;
  if (std::ranges::any_of(parts, [](const TensorView* part) { return part->packed != nullptr; }))
    return use == HEDDLE_USE_TABLE ? DType::bf16 : DType::f32;
  bool differ = false, small = false;
  for (const TensorView* part : parts) {
    differ = differ || part->dtype != first.dtype;
    small = small || is_quantised(part->dtype);
  }
  return differ && small ? DType::f32 : first.dtype;
}

}  // namespace heddle::engine
