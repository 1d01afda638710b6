// Which type tensors have that fill one slot together. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "engine/files/checkpoint.h"

namespace heddle::engine {

// The type by which a device is told of tensors that are joined for a use: that of the first one.
// f32 where they differ and one of them is in blocks or has 8 bits, because no other type holds
// all of their numbers. Packed rows are matrices in blocks (packed_rows.h); where no block format
// holds them they are widened on their way to a device: f32, and bf16 for tables of them. So are
// tensors of Checkpoint::widen(), and matrices of unlike column_factors(). The type that its
// checkpoint casts matrices to, where that was asked for.
DType joined_dtype(std::span<const TensorView* const> parts, std::int32_t use);

// A factor for each column of a packed matrix, which its blocks are without: what is multiplied by
// the blocks has to be multiplied by them before. (columns), f32, f16 or bf16; lives as long as
// `tensor.packed`. nullptr: there are none. In packed_groups.cpp.
const TensorView* column_factors(const TensorView& tensor);

// Of 8 bits or in blocks.
bool is_quantised(DType dtype);

// The type of the numbers of a matrix: of packed rows the block format that they are put into,
// where there is one.
DType matrix_dtype(const TensorView& tensor);

// Whether what patches add to a tensor that is used so is added to the product instead: to matrices
// that are quantised in their file. Those that a cast quantises on their way are patched before.
bool is_patched_beside(const TensorView& tensor, std::int32_t use);

}  // namespace heddle::engine
