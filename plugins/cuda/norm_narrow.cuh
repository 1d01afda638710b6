// RMS norms of short rows, of which there are many.
#pragma once

#include "norm.cuh"

namespace heddle::cuda {

constexpr std::int64_t kNarrowRowLimit = 512;  // numbers of the longest short row

// REQUIRES: rows of `width` numbers, whole eights, at most kNarrowRowLimit; no bias; one weight for
// all rows, or none.
void narrow_rms_norm(Stream& stream, const Row& row, std::int64_t rows, std::int64_t width);

}  // namespace heddle::cuda
