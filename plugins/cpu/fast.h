// What the fast kernels share: operands as f32 in cache, without a copy where they are that
// already. A fast kernel is the reference's twin on VectorKernels; it fits the same calls.
#pragma once

#include <cstdint>

#include "call.h"
#include "vector_kernels.h"
#include "walk.h"

namespace heddle::cpu {

struct Fast {
  static constexpr const char* name = "fast";
  static std::int32_t fits(const Device& device, const heddle_op_call&) {
    return device.settings().reference_only ? 0 : 2;
  }
};

// A piece of an operand as f32, broadcast to the shape of `whole`. Points into the operand or into
// scratch.
inline const float* floats_of(const VectorKernels& vector, const heddle_view& view,
                              const heddle_tensor_info& whole, Piece piece, Scratch& scratch) {
  const bool repeats = last_size(view.info) == 1 && last_size(whole) != 1;
  const std::byte* from =
      element(view, row_offset(view.info, whole, piece.row) + (repeats ? 0 : piece.begin));
  if (view.info.dtype == HEDDLE_F32 && !repeats) return reinterpret_cast<const float*>(from);
  auto* values = scratch.take<float>(static_cast<std::size_t>(piece.count));
  vector.widen(view.info.dtype, from, repeats ? 1 : piece.count, values);
  if (repeats) std::fill(values + 1, values + piece.count, values[0]);
  return values;
}

// A vector operand; nullptr when absent.
inline const float* vector_of(const VectorKernels& vector, const heddle_view* view,
                              Scratch& scratch) {
  return view == nullptr
             ? nullptr
             : floats_of(vector, *view, view->info, {0, 0, last_size(view->info)}, scratch);
}

// Where a piece of the output is computed: in place when it is f32, else in scratch until finish().
class Result {
 public:
  Result(const VectorKernels& vector, const heddle_view& out, Piece piece, Scratch& scratch)
      : vector_(vector),
        dtype_(out.info.dtype),
        count_(piece.count),
        to_(element(out, row_offset(out.info, out.info, piece.row) + piece.begin)),
        values_(dtype_ == HEDDLE_F32 ? reinterpret_cast<float*>(to_)
                                     : scratch.take<float>(static_cast<std::size_t>(piece.count))) {
  }

  float* values() const { return values_; }
  void finish() const {
    if (dtype_ != HEDDLE_F32) vector_.narrow(dtype_, values_, count_, to_);
  }

 private:
  const VectorKernels& vector_;
  heddle_dtype dtype_;
  std::int64_t count_;
  std::byte* to_;
  float* values_;
};

}  // namespace heddle::cpu
