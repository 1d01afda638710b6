// A weight with its patches added, as f32: a device rounds it to its own layout once, as it does
// with f32 files.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/files/weight_patches.h"

namespace heddle::engine {

// Rows of a tensor, each of which all of `terms` change.
struct PatchedRows {
  struct Span {
    std::int64_t begin = 0, end = 0;
  };
  const TensorView* tensor = nullptr;
  std::int64_t begin = 0, end = 0;
  std::vector<Span> spans;  // of the elements of a row: those wanted, one after another
  std::vector<const WeightPatches::Term*> terms;
};

// out: (end - begin) rows of all spans, row-major. Each element is W + (d1 + d2 + ...), each d the
// f32 sum of up * down over the rank in its order; a term that keeps less or more than all of what
// stands there multiplies it first, in f32: the bytes depend neither on which rows and columns are
// asked for together, nor on the number of threads or the instructions of the processor. Big ones
// are computed by several threads, which end before this returns.
void merge_patches(const PatchedRows& rows, float* out);

// Rows [begin, end), whole, as all terms of the tensor make them, each RowChange among them, too.
// REQUIRES: what rows_needed() gives.
void merge_changes(const TensorView& tensor, RowRange rows,
                   std::span<const WeightPatches::Term> terms, float* out);

}  // namespace heddle::engine
