// plugins/denoisers/seedvr_windows.h - the windows of tokens in which SeedVR2's attentions look.
// Source: the publisher's rule for 720 lines ("720pwin_by_size_bysize"), which ComfyUI has, too.
// Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace heddle::denoisers {

// Tokens of a video: frames, rows, columns.
using SeedvrGrid = std::array<std::int64_t, 3>;

// Windows of one size along an axis, one after another from `begin` on.
struct SeedvrRun {
  std::int64_t begin = 0, size = 0, count = 0;
  std::int64_t length() const { return size * count; }
};

// The windows along each axis, in runs that cover it. A grid is thought to have as many tokens as a
// frame of 1280 x 720 pixels and is cut into 3 x 3, at most 30 of its frames into 4; `shifted` by
// half a window along each axis that has several.
std::array<std::vector<SeedvrRun>, 3> seedvr_windows(const SeedvrGrid& grid, bool shifted);

}  // namespace heddle::denoisers
