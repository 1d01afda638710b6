#include "engine/files/joined_dtype.h"

#include <algorithm>
#include <cstring>

#include "heddle/abi/node.h"

namespace heddle::engine {
namespace {

bool have_same_factors(const TensorView& one, const TensorView& other) {
  const TensorView *const a = column_factors(one), *const b = column_factors(other);
  if (a == nullptr || b == nullptr) return a == b;
  return a->dtype == b->dtype && a->data.size() == b->data.size() &&
         std::memcmp(a->data.data(), b->data.data(), a->data.size()) == 0;
}

}  // namespace

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
    differ = differ || !have_same_factors(*part, first);
  }
  return differ && small ? DType::f32 : dtype;
}

}  // namespace heddle::engine
