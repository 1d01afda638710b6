// What patches add beside a quantised matrix W: W x + up (down x). The two factors are weights like
// others, in the type that a device computes with. Pure; any thread.
#pragma once

#include <optional>

#include "engine/memory/weight_source.h"

namespace heddle::engine {

struct WeightFactors {
  WeightSource down, up;  // (rank, columns), (rows, rank): the patches' scales are in `up` alone
};

// For the very rows and columns of W; nothing: no patch is added beside it. What the factors borrow
// lives as long as W's patches.
std::optional<WeightFactors> weight_factors(const WeightSource& matrix);

// What the very columns of W are scaled by (column_factors(), joined_dtype.h), as a vector;
// nothing: there is nothing, or W is widened and has it in its numbers.
std::optional<WeightSource> column_scale(const WeightSource& matrix);

}  // namespace heddle::engine
