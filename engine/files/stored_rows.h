// Where the rows of a tensor lie in its file, and tensors of gguf files whose rows are no whole
// number of blocks: converters give what ggml has no room for another shape ("reshaped"), so that a
// block may hold numbers of two rows. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/files/checkpoint.h"

namespace heddle::engine {

// Bytes of a tensor, counted from its first.
struct StoredBytes {
  std::uint64_t begin = 0, size = 0;
};

// Those of packed rows from `begin` to `end`: of a reshaped tensor all blocks that hold a number of
// them. REQUIRES: tensor.packed, and at least one row.
StoredBytes stored_rows(const TensorView& tensor, std::int64_t begin, std::int64_t end);

// The whole of one such row, as PackedRows reads it.
std::span<const std::byte> stored_row(const TensorView& tensor, std::int64_t row);

// How the rows of a tensor of this shape and block format are widened; nullptr where its rows are
// whole blocks, so that devices can read them.
std::shared_ptr<const PackedRows> reshaped_rows(DType dtype,
                                                const std::vector<std::int64_t>& shape);

}  // namespace heddle::engine
