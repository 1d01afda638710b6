// plugins/blocks/resample_taps.h - along one axis, the cells that each cell of another size is made
// of: what resample() sums up on the host, for who sums up elsewhere
// (plugins/denoisers/unet_fit.h). Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/blocks/resample.h"

namespace heddle::blocks {

struct Tap {
  std::int64_t cell = 0;
  float weight = 0;
};
// Of each of `to` cells the ones among `from`, in the order in which resample() adds them; a cell
// may come twice. Their weights add up to 1. REQUIRES: both are at least 1.
std::vector<std::vector<Tap>> taps_along(std::int64_t from, std::int64_t to, Resampling method);

// Two cells, and how far a new one is from the first of them.
struct CellPair {
  std::int64_t low = 0, high = 0;
  float ratio = 0;
};
// ComfyUI's bislerp: the places and ratios are resized by PyTorch's bilinear interpolation, and
// the places then rounded down.
std::vector<CellPair> pairs_along(std::int64_t from, std::int64_t to);

}  // namespace heddle::blocks
