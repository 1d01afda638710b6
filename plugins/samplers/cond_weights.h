// How much each of several predictions counts in each cell, as ComfyUI weighs the entries of a
// CONDITIONING: strength times mask, faded at the edges of areas, divided by the sum of all. Pure;
// any thread.
#pragma once

#include <span>
#include <vector>

#include "cond_scope.h"

namespace heddle::samplers {

// A mask at the size of the grid.
struct GridMask {
  std::int64_t rows = 0;      // items of the batch; fewer are repeated
  std::vector<float> values;  // (rows, grid)
};
// The box around what is not 0 in any row, at least 8 cells a side, in the last two axes of the
// grid.
Box bounds_of(const GridMask& mask, const Shape& grid);

// Of one prediction: weights (rows, box.size).
struct CellWeights {
  Box box;
  std::int64_t rows = 1;
  std::vector<float> values;
  bool counts = true;  // false: of a default entry where the others leave nothing
};

struct Weighed {
  const CondScope* scope = nullptr;
  const GridMask* mask = nullptr;  // where the scope has one
};
// Of all entries of a list that count at a time: those of one cell add up to 1, or are all 0.
// REQUIRES: masks have 1 to `items` rows.
std::vector<CellWeights> cell_weights(std::span<const Weighed> entries, const Shape& grid,
                                      std::int64_t items);

}  // namespace heddle::samplers
