#include "engine/files/joined_dtype.h"

#include <algorithm>

#include "heddle/abi/node.h"

namespace heddle::engine {

bool is_quantised(DType dtype) {
  return is_block_format(dtype) || dtype == DType::f8_e4m3 || dtype == DType::f8_e5m2;
}

DType matrix_dtype(const TensorView& tensor) {
  return tensor.packed != nullptr ? tensor.packed->blocks().value_or(DType::f32) : tensor.dtype;
}

bool is_patched_beside(const TensorView& tensor, std::int32_t use) {
  return use == HEDDLE_USE_LINEAR && is_quantised(matrix_dtype(tensor)) && !tensor.is_widened;
}

DType joined_dtype(std::span<const TensorView* const> parts, std::int32_t use) {
  const TensorView& first = *parts.front();
  if (use == HEDDLE_USE_LINEAR && first.cast) return *first.cast;
  const bool is_matrix = use == HEDDLE_USE_LINEAR;
  if (std::ranges::any_of(parts, &TensorView::is_widened)) return DType::f32;
  if (std::ranges::any_of(parts, [is_matrix](const TensorView* part) {
        return part->packed != nullptr && !(is_matrix && part->packed->blocks());
      }))
    return use == HEDDLE_USE_TABLE ? DType::bf16 : DType::f32;
  const DType dtype = matrix_dtype(first);
  bool differ = false, small = false;
  for (const TensorView* part : parts) {
    differ = differ || matrix_dtype(*part) != dtype;
    small = small || is_quantised(matrix_dtype(*part));
  }
  return differ && small ? DType::f32 : dtype;
}

}  // namespace heddle::engine
