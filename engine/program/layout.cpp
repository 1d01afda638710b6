#include "engine/program/layout.h"

#include <algorithm>
#include <numeric>

namespace heddle::engine {

Layout lay_out(const std::vector<Lifetime>& pieces, std::uint64_t alignment) {
  Layout layout;
  layout.offsets.resize(pieces.size());
  std::vector<std::uint32_t> by_size(pieces.size());
  std::iota(by_size.begin(), by_size.end(), 0u);
  std::ranges::stable_sort(
      by_size, [&](std::uint32_t a, std::uint32_t b) { return pieces[a].bytes > pieces[b].bytes; });

  struct Placed {
    std::uint64_t begin, end;
    std::uint32_t first, last;
    std::int32_t lane;
  };
  std::vector<Placed> placed;  // by their beginnings; all are looked at for each piece
  placed.reserve(pieces.size());
  for (const std::uint32_t piece : by_size) {
    const auto [unpadded, first, last, lane] = pieces[piece];
    const std::uint64_t bytes = (unpadded + alignment - 1) / alignment * alignment;
    if (bytes == 0) continue;
    std::uint64_t at = 0;
    for (const Placed& other : placed) {
      const bool is_other_lane = lane >= 0 && other.lane >= 0 && lane != other.lane;
      if (!is_other_lane && (other.last < first || last < other.first)) continue;
      if (at + bytes <= other.begin) break;
      at = std::max(at, other.end);
    }
    layout.offsets[piece] = at;
    layout.bytes = std::max(layout.bytes, at + bytes);
    const auto place = std::ranges::upper_bound(placed, at, {}, &Placed::begin);
    placed.insert(place, {at, at + bytes, first, last, lane});
  }
  return layout;
}

}  // namespace heddle::engine
