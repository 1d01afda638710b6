#include "engine/session/freed_memory.h"

#include <algorithm>
#include <utility>

namespace heddle::engine {

void FreedMemory::begin(std::vector<std::uint64_t> usable) {
  before_ = std::move(usable);
  seen_ = 0;
}

bool FreedMemory::is_worth_it(std::span<const std::uint64_t> usable,
                              std::span<const std::uint64_t> streamed, std::uint32_t steps_left) {
  const std::size_t count = std::min({before_.size(), usable.size(), streamed.size()});
  bool has_more = false;
  for (std::size_t p = 0; p < count; ++p) {
    const std::uint64_t more = usable[p] - std::min(usable[p], before_[p]);
    has_more = has_more || (streamed[p] > 0 && more > 0 && more >= streamed[p] / kNotable);
  }
  seen_ = has_more ? seen_ + 1 : 0;
  // What stays from now on is copied once more: two steps are the least that this saves.
  if (seen_ < wanted_ || steps_left < kLeastSteps) return false;
  wanted_ *= 2;
  return true;
}

}  // namespace heddle::engine
