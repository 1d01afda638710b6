#include "scoped_conditionings.h"

#include <algorithm>

#include <heddle/host_memory.hpp>

#include "boxes.h"
#include "conditioning.h"
#include "joined_entries.h"
#include "noise_mask.h"

namespace heddle::samplers {
namespace {

// A MASK at the size of the last two axes of the grid, the same for all frames.
GridMask grid_mask(Context& ctx, const Tensor& given, const Shape& grid, std::int64_t items) {
  if (grid.size() < 2)
    throw Error(
        HEDDLE_UNSUPPORTED,
        "a conditioning has a mask, and the latent is pictures with their sound, which have "
        "no places in common. Leave the mask out.");
  if (given.rank() < 2 || given.dtype() != HEDDLE_F32 || given.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning's mask is no f32 tensor (batch, height, width). Link a MASK.");
  const PlaneSize from{given.size(-2), given.size(-1)}, to{grid[grid.size() - 2], grid.back()};
  HostMemory memory(ctx);
  std::pmr::vector<float> planes(std::size_t(given.count()), &memory);
  read_to<float>(ctx, given, planes);
  if (from.height != to.height || from.width != to.width)
    planes = resize_planes(planes, from, to, memory);
  const std::int64_t plane = to.height * to.width, frames = cells_of(grid) / plane;
  GridMask mask{.rows = std::min(std::int64_t(planes.size()) / plane, items), .values = {}};
  for (std::int64_t row = 0; row < mask.rows; ++row)
    for (std::int64_t frame = 0; frame < frames; ++frame)
      mask.values.insert(mask.values.end(), planes.begin() + row * plane,
                         planes.begin() + (row + 1) * plane);
  return mask;
}

}  // namespace

ScopedConditionings::ScopedConditionings(Context& ctx, const GuidePlan& plan,
                                         const NoiseLevels& levels, Shape shape)
    : items_(shape.front()), grid_(shape.begin() + 2, shape.end()) {
  for (std::size_t i = 0; i < plan.list_count(); ++i) {
    if (plan.is_negative(i)) negative_ = i;
    read_list(ctx, plan.list(i), levels);
  }
  add_opposites(lists_);
  join_entries(lists_, entries_);
}

void ScopedConditionings::read_list(Context& ctx, const Value& conditioning,
                                    const NoiseLevels& levels) {
  const std::size_t list = lists_.size();
  std::vector<ScopedEntry>& scoped = lists_.emplace_back();
  std::vector<Value>& entries = entries_.emplace_back();
  if (!conditioning) return;
  entries = entries_of(conditioning);
  for (std::size_t item = 0; item < entries.size(); ++item) {
    const Value& entry = entries[item];
    const bool has_mask = entry.has("mask");
    ScopedEntry made{.scope = scope_of(entry, has_mask, grid_, levels),
                     .list = list,
                     .item = item,
                     .mask_list = list,
                     .mask_item = item,
                     .control_list = list,
                     .control_item = item};
    if (has_mask) {
      const GridMask& mask =
          masks_
              .emplace(Place{list, item},
                       grid_mask(ctx, entry.field("mask").as<Tensor>(), grid_, items_))
              .first->second;
      if (made.scope.bounded_by_mask) made.scope.area = bounds_of(mask, grid_);
    }
    scoped.push_back(std::move(made));
  }
}

bool ScopedConditionings::has_controls() const {
  return std::ranges::any_of(lists_, [](const std::vector<ScopedEntry>& list) {
    return std::ranges::any_of(
        list, [](const ScopedEntry& entry) { return !entry.scope.controls.empty(); });
  });
}

bool ScopedConditionings::has_boxes() const {
  return std::ranges::any_of(entries_, [](const std::vector<Value>& list) {
    return std::ranges::any_of(list, [](const Value& entry) { return has_gligen(entry); });
  });
}

const Value& ScopedConditionings::constants(Context& ctx, const Value& model, const ModelSet& set) {
  ConcatPlace where{.items = items_,
                    .grid = grid_,
                    .box = {},
                    .is_negative = set.list == negative_,
                    .latent = latent_,
                    .seed = seed_,
                    .parts = parts_};
  // Of videos all that is told of places or frames.
  const bool reads_box =
      grid_.size() == 3 || concat_layout(model_settings(model)) || has_gligen(entry(set));
  if (set.box && reads_box) where.box = set.box;
  const auto box =
      where.box ? std::pair(where.box->begin, where.box->size) : std::pair<Shape, Shape>();
  const auto place = std::pair(Place{set.list, set.item}, box);
  const auto found = constants_.find(place);
  if (found != constants_.end()) return found->second;
  return constants_.emplace(place, constants_of(ctx, entries_[set.list][set.item], model, where))
      .first->second;
}

std::vector<CellWeights> ScopedConditionings::weights(
    std::size_t list, const std::vector<std::size_t>& entries) const {
  std::vector<Weighed> weighed;
  for (const std::size_t i : entries) {
    const ScopedEntry& entry = lists_[list][i];
    weighed.push_back({&entry.scope, entry.scope.has_mask ? &mask_of(entry) : nullptr});
  }
  return cell_weights(weighed, grid_, items_);
}

}  // namespace heddle::samplers
