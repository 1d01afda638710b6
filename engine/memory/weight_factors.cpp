#include "engine/memory/weight_factors.h"

#include "engine/files/joined_dtype.h"
#include "engine/tensor/dtype.h"
#include "heddle/abi/node.h"

namespace heddle::engine {

std::optional<WeightFactors> weight_factors(const WeightSource& matrix) {
  if (matrix.patches == nullptr || matrix.use != HEDDLE_USE_LINEAR) return {};
  std::vector<TensorRows> rows;
  for (const WeightSource::Part& part : matrix.parts)
    rows.push_back({part.tensor, part.begin, part.end});
  const PatchFactors found = patch_factors(*matrix.patches, rows);
  if (found.rank == 0) return {};
  const heddle_tensor_info info = matrix.info();
  WeightFactors factors;
  factors.down.use = factors.up.use = HEDDLE_USE_LINEAR;
  factors.down.columns = matrix.columns;
  factors.down.placed_rows = factors.up.placed_width = found.rank;
  factors.down.placed_width = info.shape[1];
  factors.up.placed_rows = info.shape[0];
  for (const PatchFactors::Down& down : found.downs) {
    const std::int64_t rank = down.tensor->shape.empty() ? 1 : down.tensor->shape[0];
    factors.down.parts.push_back({down.tensor, 0, rank});
    factors.down.places.push_back({.row = down.first, .file = down.file});
  }
  for (const PatchFactors::Up& up : found.ups) {
    factors.up.parts.push_back({up.term->up, up.first, up.first + up.rows});
    factors.up.places.push_back({up.row, up.column, up.term->scale, up.term->file});
  }
  return factors;
}

std::optional<WeightSource> column_scale(const WeightSource& matrix) {
  if (matrix.use != HEDDLE_USE_LINEAR || matrix.parts.empty()) return {};
  const TensorView* const factors = column_factors(*matrix.parts.front().tensor);
  if (factors == nullptr || !is_block_format(DType(matrix.info().dtype))) return {};
  WeightSource scale;
  scale.use = HEDDLE_USE_VECTOR;
  for (const WeightSource::Range& c : matrix.columns)
    scale.parts.push_back({factors, c.begin, c.end});
  if (scale.parts.empty()) scale.parts.push_back({factors, 0, matrix.info().shape[1]});
  return scale;
}

}  // namespace heddle::engine
