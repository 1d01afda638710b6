// Layer norms of rows that a warp holds in its registers.
#pragma once

#include "norm.cuh"

namespace heddle::cuda {

constexpr std::int64_t kWarpRowLimit = 1536;  // numbers of the longest such row

// REQUIRES: rows of `width` numbers, whole eights, at most kWarpRowLimit.
void warp_layer_norm(Stream& stream, const Row& row, std::int64_t rows, std::int64_t width);

}  // namespace heddle::cuda
