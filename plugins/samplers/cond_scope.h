// Where, when and how much an entry of a CONDITIONING counts (heddle/diffusion/values.h), as far as
// it can be said without looking at pictures. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/node.hpp>

#include "noise_levels.h"
#include "plugins/blocks/weight_hooks.h"

namespace heddle::samplers {

// A box of a latent's grid, that is of the axes behind batch and channels, in cells.
struct Box {
  Shape size, begin;
  bool operator==(const Box&) const = default;
};
// The part of the box that lies in the grid. Throws when nothing does.
Box clamped(const Box& box, const Shape& grid);
std::int64_t cells_of(const Shape& size);

struct CondScope {
  std::optional<Box> area;  // of as many axes as the grid; may reach beyond it
  double strength = 1.0;
  std::optional<double> start_sigma, end_sigma;  // it counts at levels from the first to the second
  bool is_default = false;                       // it counts where the others leave something
  bool has_mask = false;
  bool bounded_by_mask = false;  // its area is the box around the mask
  double mask_strength = 1.0;
  std::vector<blocks::WeightHook> hooks;  // under which the model sees it
  std::vector<SigmaRange> controls;       // where its ControlNets are at work

  // Entries that all count the same in every cell make a mean by strengths.
  bool counts_everywhere() const { return !area && !has_mask && !is_default; }
  // ComfyUI compares in single precision, both ends included.
  bool counts_at(double sigma) const;
  // Which of its ControlNets are at work.
  std::vector<bool> controls_at(double sigma) const;
};

// `entry`: a record with blocks::kScopeFields, and a mask if it has one.
CondScope scope_of(const Value& entry, bool has_mask, const Shape& grid, const NoiseLevels& levels);

// An entry for the model: what it reads is that of entry `item` of list `list`.
struct ScopedEntry {
  CondScope scope;
  std::size_t list = 0, item = 0;
  std::size_t mask_list = 0, mask_item = 0;        // whose mask it has
  std::size_t control_list = 0, control_item = 0;  // whose ControlNets and boxes
};
using ScopedLists = std::vector<std::vector<ScopedEntry>>;

// Each area of one list gets an opposite in the others, as in ComfyUI: where none has this area, a
// copy with it, and with its ControlNets, reads the text of the smallest entry around it.
void add_opposites(ScopedLists& lists);

}  // namespace heddle::samplers
