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

  std::vector<std::uint32_t> placed;  // by offset
  for (const std::uint32_t piece : by_size) {
    const std::uint64_t bytes = (pieces[piece].bytes + alignment - 1) / alignment * alignment;
    if (bytes == 0) continue;
    std::uint64_t at = 0;
    for (const std::uint32_t other : placed) {
      const Lifetime& o = pieces[other];
      if (o.last < pieces[piece].first || pieces[piece].last < o.first) continue;
      if (at + bytes <= layout.offsets[other]) break;
      at = std::max(at, layout.offsets[other] + (o.bytes + alignment - 1) / alignment * alignment);
    }
    layout.offsets[piece] = at;
    layout.bytes = std::max(layout.bytes, at + bytes);
    const auto place = std::ranges::upper_bound(placed, at, {},
                                                [&](std::uint32_t p) { return layout.offsets[p]; });
    placed.insert(place, piece);
  }
  return layout;
}

}  // namespace heddle::engine
