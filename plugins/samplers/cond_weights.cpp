#include "cond_weights.h"

#include <algorithm>
#include <cmath>

namespace heddle::samplers {
namespace {

constexpr std::int64_t kLeastSide = 8;    // of a box around a mask
constexpr std::int64_t kMostFeather = 8;  // cells

// Calls f(cell of the box, cell of the grid) for every cell of a box, row-major.
template <class F>
void for_each_cell(const Box& box, const Shape& grid, F&& f) {
  const std::int64_t cells = cells_of(box.size);
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    std::int64_t rest = cell, step = 1, at = 0;
    for (std::size_t axis = grid.size(); axis-- > 0;) {
      at += (box.begin[axis] + rest % box.size[axis]) * step;
      rest /= box.size[axis];
      step *= grid[axis];
    }
    f(cell, at);
  }
}

// Multiplies the cells that lie `depth` behind an edge, counted along an axis from its beginning.
void scale_layer(CellWeights& weights, std::size_t axis, std::int64_t layer, float factor) {
  std::int64_t inner = 1;
  for (std::size_t a = axis + 1; a < weights.box.size.size(); ++a) inner *= weights.box.size[a];
  const std::int64_t side = weights.box.size[axis];
  const auto outer = std::int64_t(weights.values.size()) / (inner * side);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i)
      weights.values[std::size_t((o * side + layer) * inner + i)] *= factor;
}

// Fades towards edges that lie inside the picture: cell t counts (t + 1) / r.
void feather(CellWeights& weights, const Shape& grid) {
  const Box& box = weights.box;
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    const std::int64_t cells = std::min(kMostFeather, box.size[axis] / 4);
    const auto factor = [cells](std::int64_t t) {
      return float(1.0 / double(cells) * double(t + 1));
    };
    if (box.begin[axis] != 0)
      for (std::int64_t t = 0; t < cells; ++t) scale_layer(weights, axis, t, factor(t));
    if (box.begin[axis] + box.size[axis] < grid[axis])
      for (std::int64_t t = 0; t < cells; ++t)
        scale_layer(weights, axis, box.size[axis] - 1 - t, factor(t));
  }
}

CellWeights own_weights(const Weighed& entry, const Shape& grid) {
  const CondScope& scope = *entry.scope;
  const Box whole{grid, Shape(grid.size(), 0)};
  CellWeights weights{.box = scope.area ? clamped(*scope.area, grid) : whole, .values = {}};
  const std::int64_t cells = cells_of(weights.box.size);
  if (entry.mask == nullptr) {
    weights.values.assign(std::size_t(cells), float(scope.strength));
    if (scope.area) feather(weights, grid);
    return weights;
  }
  weights.rows = entry.mask->rows;
  const std::int64_t plane = cells_of(grid);
  weights.values.resize(std::size_t(weights.rows * cells));
  for (std::int64_t row = 0; row < weights.rows; ++row) {
    for_each_cell(weights.box, grid, [&](std::int64_t cell, std::int64_t at) {
      const float masked = entry.mask->values[std::size_t(row * plane + at)];
      weights.values[std::size_t(row * cells + cell)] =
          masked * float(scope.mask_strength) * float(scope.strength);
    });
  }
  return weights;
}

// Adds `sign` times what the entry counts to every item's cells.
void add_to(std::vector<float>& sums, const CellWeights& weights, const Shape& grid,
            std::int64_t items, float sign) {
  const std::int64_t plane = cells_of(grid), cells = cells_of(weights.box.size);
  for (std::int64_t item = 0; item < items; ++item) {
    const std::int64_t row = item % weights.rows;
    for_each_cell(weights.box, grid, [&](std::int64_t cell, std::int64_t at) {
      sums[std::size_t(item * plane + at)] +=
          sign * weights.values[std::size_t(row * cells + cell)];
    });
  }
}

// What the others leave of 1, in every item.
std::vector<float> rest_of(std::span<const Weighed> entries,
                           const std::vector<CellWeights>& weights, const Shape& grid,
                           std::int64_t items) {
  std::vector<float> rest(std::size_t(items * cells_of(grid)), 1.0f);
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (!entries[i].scope->is_default) add_to(rest, weights[i], grid, items, -1.0f);
  for (float& value : rest) value = std::max(value, 0.0f);
  return rest;
}

void take_rest(CellWeights& weights, const std::vector<float>& rest, const Shape& grid,
               std::int64_t items) {
  const std::int64_t plane = cells_of(grid), cells = cells_of(weights.box.size);
  weights.rows = items;
  weights.values.resize(std::size_t(items * cells));
  for (std::int64_t item = 0; item < items; ++item)
    for_each_cell(weights.box, grid, [&](std::int64_t cell, std::int64_t at) {
      weights.values[std::size_t(item * cells + cell)] = rest[std::size_t(item * plane + at)];
    });
}

void divide(CellWeights& weights, const std::vector<float>& sums, const Shape& grid,
            std::int64_t items) {
  const std::int64_t plane = cells_of(grid), cells = cells_of(weights.box.size);
  std::vector<float> divided(std::size_t(items * cells));
  for (std::int64_t item = 0; item < items; ++item) {
    const std::int64_t row = item % weights.rows;
    for_each_cell(weights.box, grid, [&](std::int64_t cell, std::int64_t at) {
      const float own = weights.values[std::size_t(row * cells + cell)];
      divided[std::size_t(item * cells + cell)] =
          own == 0.0f ? 0.0f : own / sums[std::size_t(item * plane + at)];
    });
  }
  weights.rows = items;
  weights.values = std::move(divided);
}

}  // namespace

Box bounds_of(const GridMask& mask, const Shape& grid) {
  const std::int64_t width = grid.back(), height = grid[grid.size() - 2];
  std::int64_t top = height, left = width, bottom = -1, right = -1;
  for (std::size_t i = 0; i < mask.values.size(); ++i) {
    if (mask.values[i] == 0.0f) continue;
    const std::int64_t x = std::int64_t(i) % width, y = std::int64_t(i) / width % height;
    top = std::min(top, y);
    bottom = std::max(bottom, y);
    left = std::min(left, x);
    right = std::max(right, x);
  }
  Box box{grid, Shape(grid.size(), 0)};
  if (bottom < 0) top = left = bottom = right = 0;  // nothing: the least box there is
  const std::size_t rows = grid.size() - 2, columns = grid.size() - 1;
  box.size[rows] = std::max(kLeastSide, bottom - top + 1);
  box.size[columns] = std::max(kLeastSide, right - left + 1);
  box.begin[rows] = top;
  box.begin[columns] = left;
  return box;
}

std::vector<CellWeights> cell_weights(std::span<const Weighed> entries, const Shape& grid,
                                      std::int64_t items) {
  std::vector<CellWeights> weights;
  for (const Weighed& entry : entries) weights.push_back(own_weights(entry, grid));
  const bool has_default =
      std::ranges::any_of(entries, [](const Weighed& entry) { return entry.scope->is_default; });
  if (has_default) {
    const std::vector<float> rest = rest_of(entries, weights, grid, items);
    const bool any = std::ranges::any_of(rest, [](float value) { return value > 0.0f; });
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!entries[i].scope->is_default) continue;
      weights[i].counts = any;
      take_rest(weights[i], rest, grid, items);
    }
  }
  // ComfyUI's sums begin at 1e-37: what nothing counts in becomes 0, not a quotient of zeros.
  std::vector<float> sums(std::size_t(items * cells_of(grid)), 1e-37f);
  for (const CellWeights& own : weights) add_to(sums, own, grid, items, 1.0f);
  for (CellWeights& own : weights) divide(own, sums, grid, items);
  return weights;
}

}  // namespace heddle::samplers
