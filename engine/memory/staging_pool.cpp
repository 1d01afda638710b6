#include "engine/memory/staging_pool.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "engine/memory/staging_sizes.h"

namespace heddle::engine {

std::uint64_t StagingPool::share() const {
  return limits_.staging_bytes / std::max(1u, limits_.devices);
}

std::uint64_t StagingPool::most_pinned() const {
  return std::min(budget_.limit(),
                  limits_.pinned_bytes - std::min(limits_.staging_bytes, limits_.pinned_bytes));
}

bool StagingPool::can_pin_copy(std::uint64_t bytes) const {
  const std::uint64_t most = most_pinned(), copies = pinned_ - staging_;
  return bytes <= most && copies <= most - bytes;
}

StagingPool::Supply StagingPool::supply(const Device& reader, std::uint64_t least,
                                        std::uint64_t most) const {
  Supply supply;
  const bool is_small = least <= kSmallBuffer;
  const auto [begin, end] = made_.equal_range(&reader);
  for (auto made = begin; made != end; ++made) {
    supply.bytes += made->second;
    supply.count += (made->second <= kSmallBuffer) == is_small ? 1 : 0;
    supply.has_suitable = supply.has_suitable || (made->second >= least && made->second <= most);
  }
  return supply;
}

std::unique_ptr<HostBuffer> StagingPool::take_idle(const Device& reader, std::uint64_t least,
                                                   std::uint64_t most) {
  auto best = idle_.end();
  for (auto buffer = idle_.begin(); buffer != idle_.end(); ++buffer) {
    const std::uint64_t size = (*buffer)->bytes();
    if ((*buffer)->pinned_by() != &reader || size < least || size > most) continue;
    if (best == idle_.end() || size < (*best)->bytes()) best = buffer;
  }
  if (best == idle_.end()) return nullptr;
  std::unique_ptr<HostBuffer> found = std::move(*best);
  idle_.erase(best);
  return found;
}

std::unique_ptr<HostBuffer> StagingPool::take_idle_plain(std::optional<std::uint64_t> bytes) {
  const auto found = std::ranges::find_if(idle_, [&](const auto& buffer) {
    return buffer->pinned_by() == nullptr && (!bytes || buffer->bytes() == *bytes);
  });
  if (found == idle_.end()) return nullptr;
  std::unique_ptr<HostBuffer> buffer = std::move(*found);
  idle_.erase(found);
  return buffer;
}

std::unique_ptr<HostBuffer> StagingPool::make(Lock& lock,
                                              const std::shared_ptr<const Device>& reader,
                                              std::uint64_t bytes, bool& refused) {
  refused = false;
  auto budget = budget_.reserve(bytes);
  if (!budget) return nullptr;
  const auto made = made_.emplace(reader.get(), bytes);
  staging_ += bytes;
  std::unique_ptr<HostBuffer> buffer = make_copy(lock, reader, std::move(*budget));
  if (buffer != nullptr) return buffer;
  refused = true;
  made_.erase(made);
  staging_ -= bytes;
  monitor_.changed.notify_all();
  return nullptr;
}

std::unique_ptr<HostBuffer> StagingPool::make_copy(Lock& lock,
                                                   const std::shared_ptr<const Device>& pinned_by,
                                                   HostBytes budget) {
  const std::uint64_t pinned = pinned_by == nullptr ? 0 : budget.bytes();
  pinned_ += pinned;
  lock.unlock();
  std::unique_ptr<HostBuffer> memory;
  try {
    memory = pinned_by == nullptr ? std::make_unique<HostBuffer>(std::move(budget))
                                  : std::make_unique<HostBuffer>(std::move(budget), pinned_by);
  } catch (const std::exception&) {  // then something else has to do
    budget.give_back();
  }
  lock.lock();
  if (memory == nullptr) pinned_ -= pinned;
  return memory;
}

void StagingPool::forget_copy(const HostBuffer& memory) {
  if (memory.pinned_by() != nullptr) pinned_ -= memory.bytes();
}

void StagingPool::set_idle(Lock& lock, std::unique_ptr<HostBuffer> buffer) {
  try {
    idle_.push_back(nullptr);
  } catch (const std::bad_alloc&) {
    return free(lock, std::move(buffer));
  }
  idle_.back() = std::move(buffer);
}

void StagingPool::free(Lock& lock, std::unique_ptr<HostBuffer> buffer) {
  const std::uint64_t bytes = buffer->bytes();
  const std::uint64_t pinned = buffer->pinned_by() == nullptr ? 0 : bytes;
  const auto [begin, end] = made_.equal_range(buffer->pinned_by());
  const auto made = std::find_if(begin, end, [&](const auto& one) { return one.second == bytes; });
  if (made != end) made_.erase(made);
  {
    const HostMonitor::Freeing freeing(monitor_, lock);
    buffer.reset();
  }
  staging_ -= pinned;
  pinned_ -= pinned;
  monitor_.changed.notify_all();
}

bool StagingPool::free_one(Lock& lock, const Device* pinned_by) {
  const auto first = std::ranges::find_if(idle_, [&](const auto& buffer) {
    return pinned_by == nullptr || buffer->pinned_by() == pinned_by;
  });
  if (first == idle_.end()) return false;
  std::unique_ptr<HostBuffer> freed = std::move(*first);
  idle_.erase(first);
  free(lock, std::move(freed));
  return true;
}

}  // namespace heddle::engine
