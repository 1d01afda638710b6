// Products: the tiles that linear and convolution share. A tile is some rows of the left operand
// times some panels of the weight, summed in f32 in stretches of kStretch, finished (bias,
// activation, residual) and written, all by one thread. Every element is the same chain of
// multiply-adds whatever the tile, so a row's bytes depend on neither its neighbours nor the number
// of threads. Functions on borrowed memory; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "call.h"
#include "layouts.h"
#include "scratch.h"
#include "vector_kernels.h"
#include "walk.h"

namespace heddle::cpu {

// Terms summed at a time: a panel's part is 48 KiB as f32, and stays in cache. Of a weight in
// blocks of 256, which end where a stretch does, 32 KiB.
inline constexpr std::int64_t kStretch = 384, kBlockStretch = 256;
inline constexpr std::int64_t kAskedBytes =
    16;  // that VectorKernels::multiply asks for ahead, for every term

// The right operand. REQUIRES: layout kPlainLayout with rank 2, or one of the panel layouts.
struct Right {
  const heddle_view* weight;
  const VectorKernels* vector;

  // Part [k0, k0 + k) of a panel as f32, k x 32. May point into the weight, or into `room`, which
  // has 32 k floats.
  const float* panel(std::int64_t number, std::int64_t k0, std::int64_t k, float* room,
                     Scratch& scratch) const;

  // The same part as it is stored. REQUIRES: a panel layout; k0 is even where it has pairs.
  const std::byte* stored(std::int64_t number, std::int64_t k0) const {
    return element(*weight, (number * sum_length(weight->info) + k0) * kPanelColumns);
  }
  // What follows part [k0, k0 + k) of a panel, where panels up to `end` are read: the part of the
  // next panel, or the next part of the first of them. Only to be asked for ahead of time.
  const std::byte* next(std::int64_t number, std::int64_t end, std::int64_t k0,
                        std::int64_t k) const {
    if (!is_packed()) return static_cast<const std::byte*>(weight->data);
    return number + 1 < end ? stored(number + 1, k0) : stored(number, k0 + k);
  }
  bool is_packed() const { return weight->info.layout != kPlainLayout; }
  std::int64_t stretch() const {
    return kStretch % device::block_elements(weight->info.dtype) == 0 ? kStretch : kBlockStretch;
  }
  // Of the 32 outputs of a panel. REQUIRES: layout kMatrixScaled.
  const float* scales(std::int64_t number) const {
    return reinterpret_cast<const float*>(static_cast<const std::byte*>(weight->data) +
                                          scales_offset(weight->info)) +
           number * kPanelColumns;
  }
};

// Rows of a tensor by number, without a division where they lie evenly.
class RowPlaces {
 public:
  explicit RowPlaces(const heddle_view& view) : view_(&view), step_(even_step(view.info)) {}
  std::byte* at(std::int64_t row, std::int64_t column) const {
    const std::int64_t offset = step_ ? row * *step_ : row_offset(view_->info, view_->info, row);
    return element(*view_, offset + column);
  }
  heddle_dtype dtype() const { return view_->info.dtype; }

 private:
  const heddle_view* view_;
  std::optional<std::int64_t> step_;
};

// What happens to a sum before it is written. The bias is filled up to whole panels; nullptr: none.
class Finish {
 public:
  Finish(const Call& call, const float* bias, heddle_activation activation,
         const heddle_view* residual);

  // Writes rows x columns sums, `step` apart, to rows [row, ...) and columns [column, ...) of the
  // output.
  void write(float* sums, std::int64_t step, std::int64_t row, std::int64_t rows,
             std::int64_t column, std::int64_t columns, Scratch& scratch) const;

 private:
  const VectorKernels& vector_;
  const float* bias_;
  heddle_activation activation_;
  std::optional<RowPlaces> residual_;
  RowPlaces out_;
};

// The bias as f32, filled up to whole panels. Lives as long as the call.
const float* load_bias(const Call& call, const heddle_view* bias, std::int64_t outputs);

// How an output of rows x columns is cut into tiles; from its shape alone.
struct Cut {
  std::int64_t rows, columns;            // of the output
  std::int64_t tile_rows, tile_columns;  // multiples of a block and of a panel
  std::int64_t down, across;             // tiles

  // Longer tiles share the widening of a weight that takes time to be widened.
  enum class Widening { kCheap, kSlow };
  Cut(std::int64_t rows, std::int64_t columns, Widening widening = Widening::kCheap);
  std::int64_t tiles() const { return down * across; }
};

// Sums rows [row, row + rows) times panels [panel, ...) into sums (rounded up to blocks x columns,
// whole panels). left.pack(row, rows, k0, k, block_rows, packed, scratch) writes one block of at
// most block_rows rows, zeros for missing ones.
template <class Left>
void multiply_tile(const VectorKernels& vector, const Left& left, const Right& right,
                   std::int64_t row, std::int64_t rows, std::int64_t panel, std::int64_t columns,
                   std::int64_t length, float* sums, Scratch& scratch) {
  const bool few = rows <= kFewRows;
  const std::int64_t block_rows = few ? kFewRows : kBlockRows;
  const std::int64_t blocks = (rows + block_rows - 1) / block_rows;
  const std::int64_t stretch = right.stretch(), longest = std::min(stretch, length);
  const bool reads_few =
      few && right.is_packed() && device::is_compute_float(right.weight->info.dtype);
  auto* packed = scratch.take<float>(static_cast<std::size_t>(blocks * block_rows * longest));
  auto* room = scratch.take<float>(static_cast<std::size_t>(kPanelColumns * longest));
  if (length == 0) std::fill(sums, sums + blocks * block_rows * columns, 0.0f);
  for (std::int64_t k0 = 0; k0 < length; k0 += stretch) {
    const std::int64_t k = std::min(stretch, length - k0);
    const Scratch::Frame frame(scratch);
    for (std::int64_t b = 0; b < blocks; ++b)
      left.pack(row + b * block_rows, std::min(block_rows, rows - b * block_rows), k0, k,
                block_rows, packed + b * block_rows * k, scratch);
    for (std::int64_t p = 0; p < columns / kPanelColumns; ++p) {
      const Scratch::Frame panel_frame(scratch);
      float* to = sums + p * kPanelColumns;
      if (reads_few) {
        const std::byte* from = right.stored(panel + p, k0);
        if (is_paired(right.weight->info.layout))
          vector.multiply_few_pairs(packed, from, k, to, columns, k0 > 0);
        else
          vector.multiply_few(packed, right.weight->info.dtype, from, k, to, columns, k0 > 0);
        continue;
      }
      const float* from = right.panel(panel + p, k0, k, room, scratch);
      if (few) {
        vector.multiply_few(packed, HEDDLE_F32, from, k, to, columns, k0 > 0);
        continue;
      }
      const char* ahead = reinterpret_cast<const char*>(
          right.next(panel + p, panel + columns / kPanelColumns, k0, k));
      for (std::int64_t b = 0; b < blocks; ++b, ahead += k * kAskedBytes)
        vector.multiply(packed + b * block_rows * k, from, k, to + b * block_rows * columns,
                        columns, k0 > 0, ahead);
    }
  }
}

}  // namespace heddle::cpu
