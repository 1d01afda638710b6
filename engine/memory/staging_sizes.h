// How large the pinned buffers are that bytes pass through, and how many of them there are: few,
// and of two sizes, so that each does for whatever comes next and none is made while others wait.
// And how long one that has been copied from stays full.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/memory/host_item.h"

namespace heddle::engine {

// Up to here an item is small. Such buffers are for themselves: one that waits in a large buffer
// keeps out what takes long.
inline constexpr std::uint64_t kSmallBuffer = std::uint64_t{1} << 20;
// Of a device's share so many large ones have to be there: one is copied from, one is filled, and
// one makes up for their not ending together.
inline constexpr std::uint64_t kLargeBuffers = 3;
// Of one size, for a device. More would be filled before anybody can want them.
inline constexpr std::size_t kMostBuffers = 8;

// Whether a device comes for it in a moment that has no buffer of its own for it: where several
// load the same, one buffer that is filled once does for all of them.
inline bool is_wanted_soon(const HostItem& item) {
  constexpr std::uint64_t kSoon = 4;  // before others of what it expects
  return std::ranges::any_of(item.uses, [&](const ItemUse& use) {
    const Device& reader = *use.forecast->reader;
    return use.forecast->order == UseOrder::once && !reader.host_visible() && reader.has_pinned() &&
           use.distance() < kSoon;
  });
}

}  // namespace heddle::engine
