#include "cond_scope.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "control_value.h"

namespace heddle::samplers {
namespace {

constexpr std::int64_t kWholeAxis = 2147483648;  // ComfyUI's size for an axis that nobody cut

std::vector<double> numbers_of(const Value& list) {
  std::vector<double> numbers;
  for (std::uint32_t i = 0; i < list.count(); ++i) numbers.push_back(list.item(i).as<double>());
  return numbers;
}

// Sizes and positions, made to fit the axes of the grid: axes that are missing in front are whole,
// those too many at the end are left out.
Box box_of(const std::vector<double>& numbers, std::size_t axes) {
  if (numbers.empty() || numbers.size() % 2 != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "the conditioning's area has " +
                                             std::to_string(numbers.size()) +
                                             " numbers. Set it with a node that sets areas.");
  const std::size_t given = numbers.size() / 2;
  Box box;
  for (std::size_t axis = given; axis < axes; ++axis) {
    box.size.push_back(kWholeAxis);
    box.begin.push_back(0);
  }
  for (std::size_t axis = 0; axis < std::min(given, axes); ++axis) {
    box.size.push_back(std::int64_t(numbers[axis]));
    box.begin.push_back(std::int64_t(numbers[given + axis]));
  }
  return box;
}

// Python's round(): half to even.
std::vector<double> resolved(std::vector<double> fractions, const Shape& grid) {
  const std::size_t given = fractions.size() / 2;
  const std::size_t skipped = grid.size() > given ? grid.size() - given : 0;
  for (std::size_t axis = 0; axis < given; ++axis) {
    const auto side = double(grid[std::min(skipped + axis, grid.size() - 1)]);
    fractions[axis] = std::max(1.0, std::nearbyint(fractions[axis] * side));
    fractions[given + axis] = std::nearbyint(fractions[given + axis] * side);
  }
  return fractions;
}

bool lies_in(const Box& box, const Box& around) {
  for (std::size_t axis = 0; axis < box.size.size(); ++axis) {
    if (box.begin[axis] < around.begin[axis]) return false;
    if (box.size[axis] + box.begin[axis] > around.size[axis] + around.begin[axis]) return false;
  }
  return true;
}

double volume(const Box& box) {
  double product = 1;
  for (const std::int64_t side : box.size) product *= double(side);
  return product;
}

const ScopedEntry* smallest_around(const std::vector<ScopedEntry>& list, const Box& area) {
  const ScopedEntry* smallest = nullptr;
  for (const ScopedEntry& entry : list) {
    const std::optional<Box>& own = entry.scope.area;
    if (!own && smallest == nullptr) smallest = &entry;
    if (!own || !lies_in(area, *own)) continue;
    if (smallest == nullptr || !smallest->scope.area ||
        volume(*smallest->scope.area) > volume(*own))
      smallest = &entry;
  }
  return smallest;
}

}  // namespace

Box clamped(const Box& box, const Shape& grid) {
  Box inside = box;
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    inside.size[axis] = std::min(box.size[axis], grid[axis] - box.begin[axis]);
    if (inside.size[axis] > 0 && inside.begin[axis] >= 0) continue;
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a conditioning's area begins at cell " + std::to_string(box.begin[axis]) +
                    " of an axis of the latent that has " + std::to_string(grid[axis]) +
                    " cells. Move the area into the picture (8 pixels are a cell).");
  }
  return inside;
}

std::int64_t cells_of(const Shape& size) {
  std::int64_t cells = 1;
  for (const std::int64_t side : size) cells *= side;
  return cells;
}

bool CondScope::counts_at(double sigma) const {
  if (start_sigma && float(sigma) > float(*start_sigma)) return false;
  return !end_sigma || float(sigma) >= float(*end_sigma);
}

std::vector<bool> CondScope::controls_at(double sigma) const {
  std::vector<bool> at_work;
  for (const SigmaRange& range : controls) at_work.push_back(range.holds(sigma));
  return at_work;
}

CondScope scope_of(const Value& entry, bool has_mask, const Shape& grid,
                   const NoiseLevels& levels) {
  CondScope scope;
  scope.strength = entry.get<double>("strength", 1.0);
  scope.is_default = entry.get<bool>("default", false);
  scope.has_mask = has_mask;
  scope.bounded_by_mask = has_mask && entry.get<bool>("set_area_to_bounds", false);
  scope.mask_strength = entry.get<double>("mask_strength", 1.0);
  if (entry.has("area_fractions"))
    scope.area = box_of(resolved(numbers_of(entry.field("area_fractions")), grid), grid.size());
  else if (entry.has("area"))
    scope.area = box_of(numbers_of(entry.field("area")), grid.size());
  const double start = entry.get<double>("start_percent", 0.0),
               end = entry.get<double>("end_percent", 1.0);
  // An embedding of a part of the way counts in the whole range that both allow.
  const bool is_part = entry.has("clip_start_percent");
  if (is_part || entry.has("start_percent"))
    scope.start_sigma =
        levels.percent_to_sigma(std::max(start, entry.get<double>("clip_start_percent", start)));
  if (is_part || entry.has("end_percent"))
    scope.end_sigma =
        levels.percent_to_sigma(std::min(end, entry.get<double>("clip_end_percent", end)));
  scope.hooks = blocks::read_hooks(entry.field("hooks"));
  for (const Control& control : controls_of(entry))
    scope.controls.push_back(range_between(levels, control.start_percent, control.end_percent));
  return scope;
}

void add_opposites(ScopedLists& lists) {
  for (std::size_t from = 0; from < lists.size(); ++from) {
    for (std::size_t i = 0; i < lists[from].size(); ++i) {
      if (!lists[from][i].scope.area) continue;
      for (std::size_t to = 0; to < lists.size(); ++to) {
        if (to == from) continue;
        const ScopedEntry entry = lists[from][i];
        const ScopedEntry* around = smallest_around(lists[to], *entry.scope.area);
        if (around == nullptr || around->scope.area == entry.scope.area) continue;
        ScopedEntry opposite = entry;
        opposite.list = around->list;
        opposite.item = around->item;
        lists[to].push_back(opposite);
      }
    }
  }
}

}  // namespace heddle::samplers
