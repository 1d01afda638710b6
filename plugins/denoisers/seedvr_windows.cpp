#include "seedvr_windows.h"

#include <algorithm>
#include <cmath>

#include "plugins/blocks/resample.h"

namespace heddle::denoisers {
namespace {

constexpr double kTokensOf720 = 45 * 80;
constexpr std::int64_t kMostWindowFrames = 30, kWindowsAlong[] = {4, 3, 3};

std::int64_t divided_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }

// Windows of `size` along an axis; shifted ones begin half a window before it.
std::vector<SeedvrRun> runs_along(std::int64_t length, std::int64_t size, bool shifted) {
  std::vector<SeedvrRun> runs;
  std::int64_t begin = 0;
  // Twice the place of an end, which may lie between two tokens: then the lower one counts.
  for (std::int64_t end_twice = shifted && size < length ? size : 2 * size; begin < length;
       end_twice += 2 * size) {
    const std::int64_t end = std::min(end_twice / 2, length), here = end - begin;
    if (here > 0) {
      if (!runs.empty() && runs.back().size == here)
        ++runs.back().count;
      else
        runs.push_back({begin, here, 1});
    }
    begin = std::max(begin, end);
  }
  return runs;
}

}  // namespace

std::array<std::vector<SeedvrRun>, 3> seedvr_windows(const SeedvrGrid& grid, bool shifted) {
  const double scale = std::sqrt(kTokensOf720 / double(grid[1] * grid[2]));
  std::array<std::vector<SeedvrRun>, 3> runs;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t thought = axis == 0 ? std::min(grid[0], kMostWindowFrames)
                                           : blocks::rounded(double(grid[axis]) * scale),
                       size = std::max<std::int64_t>(divided_up(thought, kWindowsAlong[axis]), 1);
    runs[axis] = runs_along(grid[axis], size, shifted);
  }
  return runs;
}

}  // namespace heddle::denoisers
