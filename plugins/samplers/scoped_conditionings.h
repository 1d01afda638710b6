// The conditionings of a run with where, when and how much each entry counts: their masks at the
// size of the latent, and what the model reads of them. One call's thread.
#pragma once

#include <map>
#include <vector>

#include "cond_weights.h"
#include "guide.h"
#include "stretches.h"

namespace heddle::samplers {

class ScopedConditionings {
 public:
  // `shape` of the latent, (B, C, ...). Throws where an entry is none, or has an area outside.
  ScopedConditionings(Context& ctx, const GuidePlan& plan, const NoiseLevels& levels, Shape shape);

  // The latent that is drawn over and the run's seed (ConcatPlace), before constants() is asked for
  // anything.
  void show(const Value& latent, std::uint64_t seed) {
    latent_ = latent;
    seed_ = seed;
  }
  // Of pictures and their sound (ConcatPlace), likewise.
  void use_parts(std::vector<Shape> parts) { parts_ = std::move(parts); }
  std::uint64_t seed() const { return seed_; }
  const ScopedLists& lists() const { return lists_; }
  const Shape& grid() const { return grid_; }
  // As it came, but for ControlNets that it has from a positive one.
  const Value& entry(const ModelSet& set) const { return entries_[set.list][set.item]; }
  bool has_controls() const;
  bool has_boxes() const;
  // What the model reads; made once.
  const Value& constants(Context& ctx, const Value& model, const ModelSet& set);
  // Of entries of one list.
  std::vector<CellWeights> weights(std::size_t list, const std::vector<std::size_t>& entries) const;

 private:
  void read_list(Context& ctx, const Value& conditioning, const NoiseLevels& levels);
  const GridMask& mask_of(const ScopedEntry& entry) const {
    return masks_.at({entry.mask_list, entry.mask_item});
  }

  using Place = std::pair<std::size_t, std::size_t>;
  std::int64_t items_;
  Shape grid_;
  Value latent_;
  std::uint64_t seed_ = 0;
  std::vector<Shape> parts_;
  ScopedLists lists_;
  std::size_t negative_ = 0;                 // of them
  std::vector<std::vector<Value>> entries_;  // as they came, by list
  std::map<Place, GridMask> masks_;
  // Where the model reads something beside the point, by boxes, too.
  std::map<std::pair<Place, std::pair<Shape, Shape>>, Value> constants_;
};

}  // namespace heddle::samplers
