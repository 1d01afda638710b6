#include "engine/memory/pinned.h"

#include <utility>

namespace heddle::core {

std::unique_ptr<PinnedMemory> StagingBuffers::take(const Device& device, std::uint64_t bytes) {
  auto best = idle_.end();
  for (auto buffer = idle_.begin(); buffer != idle_.end(); ++buffer) {
    const std::uint64_t size = (*buffer)->bytes();
    if (&(*buffer)->device() != &device || size < bytes || size / 2 > bytes) continue;
    if (best == idle_.end() || size < (*best)->bytes()) best = buffer;
  }
  if (best == idle_.end()) return nullptr;
  std::unique_ptr<PinnedMemory> found = std::move(*best);
  idle_.erase(best);
  return found;
}

std::unique_ptr<PinnedMemory> StagingBuffers::drop() {
  if (idle_.empty()) return nullptr;
  std::unique_ptr<PinnedMemory> first = std::move(idle_.front());
  idle_.erase(idle_.begin());
  return first;
}

}  // namespace heddle::core
