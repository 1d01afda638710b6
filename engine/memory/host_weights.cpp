#include "engine/memory/host_weights.h"

#include <algorithm>
#include <list>
#include <optional>
#include <utility>

#include "engine/base/error.h"
#include "engine/files/stored_rows.h"
#include "engine/tensor/dtype.h"

namespace heddle::engine {

FilePart file_part(const TensorView& tensor, std::int64_t begin, std::int64_t end) {
  FilePart part{tensor.file, tensor.name, tensor.file_offset(), tensor.data.size(), 0, 0};
  part.tensor_offset = part.offset;
  part.tensor_bytes = part.bytes;
  if (tensor.shape.empty() || tensor.shape[0] == 0) return part;
  if (tensor.packed != nullptr) {  // its numbers are no elements
    const StoredBytes at = begin < end ? stored_rows(tensor, begin, end) : StoredBytes{};
    part.offset += at.begin;
    part.bytes = at.size;
    return part;
  }
  std::int64_t width = 1;
  for (std::size_t axis = 1; axis < tensor.shape.size(); ++axis) width *= tensor.shape[axis];
  // By elements: of a block format a row of one element has no size of its own.
  part.offset += std::uint64_t(dtype_bytes(tensor.dtype, begin * width));
  part.bytes = std::uint64_t(dtype_bytes(tensor.dtype, (end - begin) * width));
  return part;
}

// ---- leases ----

HostLease::~HostLease() {
  if (owner_ == nullptr) return;
  HostMonitor::Lock lock(owner_->monitor_.mutex);
  owner_->leases_.remove_holder(thread_);
  for (const HostHold& hold : holds_) owner_->staged_.release(lock, hold);
}

void HostLease::end_with(Event passed) {
  if (owner_ == nullptr) return;
  auto event = std::make_shared<const Event>(std::move(passed));
  LeaseBook::PendingList pending(1);  // before anything changes
  const HostMonitor::Lock lock(owner_->monitor_.mutex);
  owner_->leases_.remove_holder(thread_);
  pending.front() = {reader_, std::move(event), std::move(holds_)};
  owner_->leases_.add_pending(pending);
  owner_ = nullptr;
}

void HostLease::leave() noexcept {
  if (owner_ == nullptr) return;
  const HostMonitor::Lock lock(owner_->monitor_.mutex);
  owner_->leases_.remove_holder(thread_);
  thread_ = {};
  owner_->monitor_.changed.notify_all();
}

// ---- asking ----

HostWeights::HostWeights(std::shared_ptr<HostBudget> budget, Options options)
    : budget_(std::move(budget)),
      group_bytes_(options.group_bytes),
      leases_(monitor_),
      pool_(monitor_, *budget_,
            {options.pinned_bytes, options.staging_bytes, options.staging_devices}),
      queue_(options.piece_bytes),
      cache_(monitor_, *budget_, pool_, queue_),
      staged_(monitor_, cache_, pool_, queue_, leases_),
      reader_(monitor_, cache_, staged_, queue_),
      prefetcher_({monitor_, *budget_, leases_, pool_, queue_, cache_, staged_, reader_},
                  {options.readers, options.copiers, options.ahead_bytes}) {}

HostWeights::~HostWeights() {
  prefetcher_.stop();
  reclaim();
  evict(HostBudget::kUnlimited);
}

std::shared_ptr<HostLease> HostWeights::get(std::span<const FilePart> parts,
                                            const std::shared_ptr<const Device>& reader) {
  // Declared before the lock: what it holds when this fails is given back without it.
  const std::shared_ptr<HostLease> lease(new HostLease(reader));
  lease->holds_.reserve(parts.size());  // so that none is taken that the lease does not know of
  lease->data_.reserve(parts.size());
  budget_->refresh();
  Lock lock(monitor_.mutex);
  cache_.set_others_lack_room(false);
  staged_.release_passed(lock);
  for (const FilePart& part : parts) cache_.advance(part, *reader);
  take_all(lock, *lease, parts);
  for (const HostHold& hold : lease->holds_) await_ready(lock, hold, reader);
  map(lock, *lease);
  lock.unlock();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const HostHold& hold = lease->holds_[i];
    const HostItem& item = *hold.item;  // leased: what is read here does not change
    const HostCopy& copy = item.*hold.copy;
    const std::byte* base = copy.memory != nullptr
                                ? copy.memory->data() + copy.lead
                                : item.file->mapping->bytes().data() + item.offset;
    if (hold.staged != nullptr) base = hold.staged->memory->data();
    lease->data_.push_back(base + (parts[i].offset - item.offset));
  }
  return lease;
}

void HostWeights::take_all(Lock& lock, HostLease& lease, std::span<const FilePart> parts) {
  const std::shared_ptr<const Device>& reader = lease.reader_;
  std::optional<LeaseBook::AdmissionTicket> ticket;
  if (!std::ranges::all_of(parts, [&](const FilePart& p) { return is_here(p, *reader); })) {
    check_fits(parts);
    ticket.emplace(leases_, lock);
  }
  lease.owner_ = this;
  for (const FilePart& part : parts) {
    lease.holds_.push_back(take_copy(lock, part, reader, lease.holds_));
    staged_.take(lock, lease.holds_.back(), reader);
  }
  lease.thread_ = std::this_thread::get_id();
  leases_.add_holder(lease.thread_);
}

void HostWeights::check_fits(std::span<const FilePart> parts) const {
  std::uint64_t bytes = 0;
  for (const FilePart& part : parts) bytes += part.bytes;
  if (bytes > budget_->limit()) throw cache_.out_of_memory(parts[0].name, bytes);
}

bool HostWeights::is_here(const FilePart& part, const Device& reader) const {
  const HostItem* const item = cache_.find(part);
  if (item == nullptr) return false;
  const auto which = cache_.choose_copy(*item, reader);
  const HostCopy& copy = item->*which;
  if (!copy.is_held()) return false;
  const bool is_staged = std::ranges::any_of(
      item->staged, [&](const auto& entry) { return entry.second.source == which; });
  if (is_staged && staged_.passes_through(*item, reader)) return true;
  return copy.is_pinned() || reader.host_visible() || !reader.has_pinned();
}

HostHold HostWeights::take_copy(Lock& lock, const FilePart& part,
                                const std::shared_ptr<const Device>& reader,
                                std::span<const HostHold> taken) {
  for (;;) {
    HostItem& item = cache_.item_of(part);
    const auto which = cache_.choose_copy(item, *reader);
    HostCopy& copy = item.*which;
    const auto is_same = [&](const HostHold& hold) {
      return hold.item == &item && hold.copy == which;
    };
    if (copy.state == CopyState::failed && std::ranges::any_of(taken, is_same))
      throw Error(*copy.failure);           // this thread is one of those who hold it
    if (copy.state == CopyState::failed) {  // those who were told drop it in a moment
      monitor_.changed.wait(lock);
      continue;
    }
    const HostHold hold{&item, which};
    ++copy.leases;
    const bool is_read_staged = which == &HostItem::pages && staged_.passes_through(item, *reader);
    try {
      if (start(lock, item, which, reader, is_read_staged) == PageCache::Started::under_way) {
        cache_.mark_used(item);
        if (!copy.is_pinned() && !reader->host_visible()) item.keep_plain = true;
        return hold;
      }
    } catch (...) {
      staged_.release(lock, hold);
      throw;
    }
    staged_.release(lock, hold);
  }
}

PageCache::Started HostWeights::start(Lock& lock, HostItem& item, PageCache::Copy which,
                                      const std::shared_ptr<const Device>& reader,
                                      bool is_assigned_later) {
  const auto started =
      cache_.start(lock, item, which, reader, ReadPriority::now, is_assigned_later);
  if (started != PageCache::Started::no_room) return started;
  await_room(lock, item, cache_.bytes_to_start(item, which));
  return PageCache::Started::again;
}

void HostWeights::await_ready(Lock& lock, const HostHold& hold,
                              const std::shared_ptr<const Device>& reader) {
  HostItem& item = *hold.item;
  HostCopy& copy = item.*hold.copy;
  // What is being filled has, or brings, its source.
  const bool is_filled = hold.staged != nullptr && hold.staged->state != CopyState::absent;
  while (!is_filled && copy.state != CopyState::ready) {
    if (copy.state == CopyState::absent) {  // whoever made it has found no such memory
      if (item.is_unbuffered) throw cache_.out_of_memory(item.name, item.bytes);
      start(lock, item, hold.copy, reader);
      continue;
    }
    if (copy.state == CopyState::failed)
      throw Error(*copy.failure);  // one for each: frames are added
    read_or_wait(lock, item);
  }
  while (hold.staged != nullptr && hold.staged->state != CopyState::ready) {
    if (hold.staged->state == CopyState::absent)
      staged_.fill(item, *hold.staged, ReadPriority::now);
    if (hold.staged->state == CopyState::failed) throw Error(*hold.staged->failure);
    read_or_wait(lock, item);
  }
}

void HostWeights::read_or_wait(Lock& lock, const HostItem& item) {
  if (const auto piece = queue_.next(&item)) {
    reader_.read(lock, *piece);
  } else {
    monitor_.changed.wait(lock);
  }
}

// Pages that were read without this process's tables come into them.
void HostWeights::map(Lock& lock, const HostLease& lease) {
  std::vector<HostItem*> unmapped;
  for (const HostHold& hold : lease.holds_)
    if (hold.staged == nullptr && hold.copy == &HostItem::pages && hold.item->pages.is_unmapped)
      unmapped.push_back(hold.item);
  if (unmapped.empty()) return;
  lock.unlock();
  for (const HostItem* item : unmapped) item->file->mapping->touch(item->offset, item->bytes);
  lock.lock();
  for (HostItem* item : unmapped) item->pages.is_unmapped = false;
}

// ---- making room ----

// The order of eviction_order.h.
bool HostWeights::evict_one(Lock& lock) {
  return cache_.evict_one(lock, {}) || pool_.free_one(lock) || staged_.evict_one(lock, nullptr);
}

// Waits until something has been given back; what it waits for goes on without this thread.
void HostWeights::await_room(Lock& lock, const HostItem& item, std::uint64_t bytes) {
  if (evict_one(lock) || staged_.release_passed(lock)) return;
  if (leases_.is_pending()) {
    // Not by waiting for the event: a stream tells its failure once, and not to the wrong one.
    monitor_.changed.wait_for(lock, HostMonitor::kPoll);
    return;
  }
  if (const auto piece = queue_.next()) return reader_.read(lock, *piece);
  if (monitor_.freeing > 0 || queue_.reading() > 0 || prefetcher_.is_beginning() ||
      leases_.is_held_by_others())
    return monitor_.changed.wait(lock);
  // Devices that compute in host memory have taken it: what they do not use now may go.
  const std::string name = item.name;
  lock.unlock();
  const bool is_made = budget_->make(bytes, name);
  lock.lock();
  if (!is_made) throw cache_.out_of_memory(name, bytes);
}

void HostWeights::reclaim() {
  Lock lock(monitor_.mutex);
  staged_.release_passed(lock);
}

std::uint64_t HostWeights::evict(std::uint64_t bytes) {
  Lock lock(monitor_.mutex);
  cache_.set_others_lack_room(true);
  staged_.release_passed(lock);
  const std::uint64_t before = budget_->given_back();
  while (budget_->given_back() - before < bytes) {
    if (evict_one(lock) || cache_.abandon_one(lock) || staged_.release_passed(lock)) continue;
    // What streams still copy from comes free without anybody's doing; a piece that is read ahead,
    // too.
    if (!leases_.is_pending() && monitor_.freeing == 0 && !prefetcher_.is_reading_ahead()) break;
    monitor_.changed.wait_for(lock, HostMonitor::kPoll);
  }
  return budget_->given_back() - before;
}

bool HostWeights::release_pinned(const Device& device) {
  Lock lock(monitor_.mutex);
  staged_.release_passed(lock);
  while (staged_.evict_one(lock, &device)) {
  }
  while (cache_.evict_pinned_by(lock, device)) {
  }
  while (pool_.free_one(lock, &device)) {
  }
  return !cache_.has_pinned_by(device) && pool_.supply(device, 0, StagingPool::kAnySize).bytes == 0;
}

HostReport HostWeights::report() const {
  const Lock lock(monitor_.mutex);
  const PageCache::Counts& counts = cache_.counts();
  return {budget_->limit(),  budget_->held(),   budget_->peak(), pool_.pinned(),
          counts.read_first, counts.read_again, counts.evicted};
}

}  // namespace heddle::engine
