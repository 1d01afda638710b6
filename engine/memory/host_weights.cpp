#include "engine/memory/host_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/memory/staging_sizes.h"
#include "engine/tensor/dtype.h"

namespace heddle::core {

FilePart file_part(const TensorView& tensor, std::int64_t begin, std::int64_t end) {
  FilePart part{tensor.file, tensor.name, tensor.file_offset(), tensor.data.size(), 0, 0};
  part.tensor_offset = part.offset;
  part.tensor_bytes = part.bytes;
  if (tensor.shape.empty() || tensor.shape[0] == 0) return part;
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
  HostWeights::Lock lock(owner_->mutex_);
  if (const auto self = owner_->holders_.find(thread_); self != owner_->holders_.end())
    owner_->holders_.erase(self);
  owner_->give_back(lock, std::move(holds_));
}

void HostLease::end_with(Event passed) {
  if (owner_ == nullptr) return;
  auto event = std::make_shared<const Event>(std::move(passed));
  std::list<HostWeights::Pending> pending(1);  // before anything changes
  const HostWeights::Lock lock(owner_->mutex_);
  if (const auto self = owner_->holders_.find(thread_); self != owner_->holders_.end())
    owner_->holders_.erase(self);
  pending.front() = {reader_, std::move(event), std::move(holds_)};
  owner_->pending_.splice(owner_->pending_.end(), pending);
  owner_->changed_.notify_all();
  owner_ = nullptr;
}

void HostLease::leave() noexcept {
  if (owner_ == nullptr) return;
  const HostWeights::Lock lock(owner_->mutex_);
  if (const auto self = owner_->holders_.find(thread_); self != owner_->holders_.end())
    owner_->holders_.erase(self);
  thread_ = {};
  owner_->changed_.notify_all();
}

// ---- asking ----

HostWeights::HostWeights(std::shared_ptr<HostRoom> room, Options options)
    : room_(std::move(room)), options_(options) {}

HostWeights::~HostWeights() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  filling_.notify_all();
  for (std::thread& reader : readers_) reader.join();
  reclaim();
  let_go(HostRoom::kUnlimited);
}

std::shared_ptr<HostLease> HostWeights::get(std::span<const FilePart> parts,
                                            const std::shared_ptr<const Device>& reader) {
  // Declared before the lock: what it holds when this fails is given back without it.
  const std::shared_ptr<HostLease> lease(new HostLease(reader));
  lease->holds_.reserve(parts.size());  // so that none is taken that the lease does not know of
  lease->data_.reserve(parts.size());
  room_->refresh();
  Lock lock(mutex_);
  others_lack_room_ = false;
  poll_passed(lock);
  for (const FilePart& part : parts) advance(part, *reader);
  {
    // One at a time takes room: two that each hold half of what they need would wait for ever.
    std::optional<Turn> turn;
    if (!std::ranges::all_of(parts, [&](const FilePart& p) { return is_here(p, *reader); })) {
      check_fits(parts);
      turn.emplace(*this, lock);
    }
    lease->owner_ = this;
    for (const FilePart& part : parts) {
      lease->holds_.push_back(take_copy(lock, part, reader, lease->holds_));
      take_staging(lock, lease->holds_.back(), reader);
    }
    lease->thread_ = std::this_thread::get_id();
    holders_.insert(lease->thread_);
  }
  for (const Hold& hold : lease->holds_) await_ready(lock, hold, reader);
  std::vector<const Hold*> unmapped;
  for (const Hold& hold : lease->holds_)
    if (hold.staged == nullptr && hold.copy == &HostItem::pages && hold.item->pages.is_unmapped)
      unmapped.push_back(&hold);
  lock.unlock();
  if (!unmapped.empty()) {
    for (const Hold* hold : unmapped)
      hold->item->file->mapping->touch(hold->item->offset, hold->item->bytes);
    lock.lock();
    for (const Hold* hold : unmapped) hold->item->pages.is_unmapped = false;
    lock.unlock();
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Hold& hold = lease->holds_[i];
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

void HostWeights::check_fits(std::span<const FilePart> parts) const {
  std::uint64_t bytes = 0;
  for (const FilePart& part : parts) bytes += part.bytes;
  if (bytes <= room_->limit()) return;
  throw out_of_memory(parts[0].name, bytes);
}

Error HostWeights::out_of_memory(const std::string& name, std::uint64_t bytes) const {
  std::uint64_t in_use = 0;
  for (const auto& [key, item] : items_)
    for (const HostCopy* copy : {&item->pages, &item->buffer})
      if (copy->leases > 0 && copy->state != CopyState::absent) in_use += item->bytes;
  return Error(Code::out_of_memory,
               cat("out of host memory: wanted ", format_bytes(bytes), " for the weights ",
                   quote(name), "; the limit is ", format_bytes(room_->limit()), ", held are ",
                   format_bytes(room_->held()), ", of which ", format_bytes(in_use),
                   " are in use. Raise the host budget."));
}

HostWeights::Turn::Turn(HostWeights& owner, Lock& lock)
    : owner_(owner),
      self_(owner.stuck_.insert(std::this_thread::get_id())),
      ticket_(owner.next_ticket_++) {
  owner.changed_.notify_all();  // whoever waits for this thread's leases has to think again
  owner.changed_.wait(lock, [&] { return owner.served_ticket_ == ticket_; });
}

HostWeights::Turn::~Turn() {
  owner_.stuck_.erase(self_);
  ++owner_.served_ticket_;
  owner_.changed_.notify_all();
}

HostItem* HostWeights::find(const FilePart& part, std::uint64_t offset, std::uint64_t bytes) {
  const auto found = items_.find({key_of(*part.file), offset, bytes});
  return found == items_.end() ? nullptr : found->second.get();
}

// The whole tensor's, when that is held: its rows are there, too.
HostItem& HostWeights::item_of(const FilePart& part) {
  HostItem* const whole = find(part, part.tensor_offset, part.tensor_bytes);
  if (whole != nullptr && (whole->pages.is_held() || whole->buffer.is_held())) return *whole;
  return own_item_of(part);
}

HostItem& HostWeights::own_item_of(const FilePart& part) {
  const FileKey file = key_of(*part.file);
  const Key key{file, part.offset, part.bytes};
  if (const auto found = items_.find(key); found != items_.end()) return *found->second;
  auto item = std::make_unique<HostItem>();
  item->file = part.file;
  item->book = &files_[file];
  item->name = part.name;
  item->offset = part.offset;
  item->bytes = part.bytes;
  return *items_.emplace(key, std::move(item)).first->second;
}

void HostWeights::drop_if_idle(HostItem& item) {
  if (item.is_idle()) items_.erase({key_of(*item.file), item.offset, item.bytes});
}

void HostWeights::advance(const FilePart& part, const Device& reader) {
  const HostItem* const item = find(part, part.offset, part.bytes);
  if (item == nullptr) return;
  for (const ItemUse& use : item->uses) {
    ExpectedParts& forecast = *use.forecast;
    if (forecast.reader.get() != &reader) continue;
    const std::uint64_t distance = use.distance();
    if (distance == kUnexpected) continue;
    forecast.position += distance + 1;
    if (forecast.order == UseOrder::cyclic) forecast.position %= forecast.items.size();
  }
}

bool HostWeights::is_here(const FilePart& part, const Device& reader) {
  HostItem* item = find(part, part.tensor_offset, part.tensor_bytes);
  if (item == nullptr || item->is_idle()) item = find(part, part.offset, part.bytes);
  if (item == nullptr) return false;
  const auto which = choose_copy(*item, reader);
  const HostCopy& copy = item->*which;
  if (!copy.is_held()) return false;
  const bool is_staged = std::ranges::any_of(
      item->staged, [&](const auto& entry) { return entry.second.source == which; });
  if (is_staged && passes_through(*item, reader)) return true;
  return copy.is_pinned() || reader.host_visible() || !reader.has_pinned();
}

HostWeights::Hold HostWeights::take_copy(Lock& lock, const FilePart& part,
                                         const std::shared_ptr<const Device>& reader,
                                         std::span<const Hold> taken) {
  for (;;) {
    HostItem& item = item_of(part);
    const auto which = choose_copy(item, *reader);
    HostCopy& copy = item.*which;
    const auto is_same = [&](const Hold& hold) { return hold.item == &item && hold.copy == which; };
    if (copy.state == CopyState::failed && std::ranges::any_of(taken, is_same))
      throw Error(*copy.failure);           // this thread is one of those who hold it
    if (copy.state == CopyState::failed) {  // those who were told let go of it in a moment
      changed_.wait(lock);
      continue;
    }
    Hold hold{&item, which};
    ++copy.leases;
    const bool is_read_staged = which == &HostItem::pages && passes_through(item, *reader);
    try {
      if (start(lock, item, which, reader, Need::now, 0, is_read_staged) == Started::under_way) {
        item.last_use = ++clock_;
        if (!copy.is_pinned() && !reader->host_visible()) item.keep_plain = true;
        return hold;
      }
    } catch (...) {
      give_back_one(lock, std::move(hold));
      throw;
    }
    give_back_one(lock, std::move(hold));
  }
}

void HostWeights::await_ready(Lock& lock, const Hold& hold,
                              const std::shared_ptr<const Device>& reader) {
  HostCopy& copy = (*hold.item).*hold.copy;
  // What is being filled has, or brings, its source.
  const bool is_filled = hold.staged != nullptr && hold.staged->state != CopyState::absent;
  while (!is_filled && copy.state != CopyState::ready) {
    if (copy.state == CopyState::absent) {  // whoever made it has found no such memory
      if (hold.item->is_unbuffered) throw out_of_memory(hold.item->name, hold.item->bytes);
      start(lock, *hold.item, hold.copy, reader, Need::now, 0);
      continue;
    }
    if (copy.state == CopyState::failed)
      throw Error(*copy.failure);  // one for each: frames are added
    if (const auto piece = next_piece(hold.item)) {
      read(lock, *piece);
    } else {
      changed_.wait(lock);
    }
  }
  while (hold.staged != nullptr && hold.staged->state != CopyState::ready) {
    if (hold.staged->state == CopyState::absent) fill(*hold.item, *hold.staged, Need::now);
    if (hold.staged->state == CopyState::failed) throw Error(*hold.staged->failure);
    if (const auto piece = next_piece(hold.item)) {
      read(lock, *piece);
    } else {
      changed_.wait(lock);
    }
  }
}

// ---- giving back ----

bool HostWeights::poll_passed(Lock& lock) {
  if (pending_.empty()) return false;
  std::list<Pending> waiting, passed;
  waiting.swap(pending_);
  ++polling_;
  lock.unlock();
  for (auto one = waiting.begin(); one != waiting.end();) {
    const auto next = std::next(one);
    if (one->passed->done()) {  // an event is its plugin's, and so goes without the lock
      one->passed = nullptr;
      one->device = nullptr;
      passed.splice(passed.end(), waiting, one);
    }
    one = next;
  }
  lock.lock();
  --polling_;
  pending_.splice(pending_.begin(), waiting);
  if (passed.empty()) return false;
  for (Pending& one : passed) give_back(lock, std::move(one.holds));
  changed_.notify_all();
  return true;
}

void HostWeights::give_back(Lock& lock, std::vector<Hold> holds) {
  for (Hold& hold : holds) give_back_one(lock, std::move(hold));
}

void HostWeights::give_back_one(Lock& lock, Hold hold) {
  HostItem& item = *hold.item;
  HostCopy& copy = item.*hold.copy;
  // What is being filled goes when it is full.
  if (hold.staged != nullptr && --hold.staged->leases == 0 &&
      hold.staged->state != CopyState::loading &&
      !(hold.staged->state == CopyState::ready && is_wanted_soon(item)))
    unstage(lock, item, std::ranges::find_if(item.staged, [&](const auto& entry) {
              return &entry.second == hold.staged;
            }));
  --copy.leases;
  changed_.notify_all();
  if (copy.leases == 0 && is_of_no_use(item, copy)) return let_go_of(lock, item, hold.copy);
  drop_if_idle(item);
}

bool HostWeights::is_of_no_use(const HostItem& item, const HostCopy& copy) const {
  if (copy.state == CopyState::failed) return true;
  if (copy.state != CopyState::ready || copy.is_pinned()) return false;
  const bool has_another = &copy == &item.pages && item.buffer.state == CopyState::ready;
  return has_another || (!item.keep_plain && item.next_use() == kUnexpected);
}

void HostWeights::reclaim() {
  Lock lock(mutex_);
  poll_passed(lock);
}

std::uint64_t HostWeights::let_go(std::uint64_t bytes) {
  Lock lock(mutex_);
  others_lack_room_ = true;
  poll_passed(lock);
  const std::uint64_t before = room_->given_back();
  const auto something_goes = [&] {
    return let_go_of_one(lock, {}) || drop_idle_staging(lock) || unstage_one(lock, nullptr) ||
           abandon_one(lock) || poll_passed(lock);
  };
  while (room_->given_back() - before < bytes) {
    if (something_goes()) continue;
    // What streams still copy from comes free without anybody's doing; a piece that is read ahead,
    // too.
    if (pending_.empty() && polling_ == 0 && leaving_ == 0 && !is_reading_ahead()) break;
    changed_.wait_for(lock, kPoll);
  }
  return room_->given_back() - before;
}

HostReport HostWeights::report() const {
  const Lock lock(mutex_);
  HostReport report = counts_;
  report.limit = room_->limit();
  report.held = room_->held();
  report.peak = room_->peak();
  report.pinned = pinned_bytes_;
  return report;
}

}  // namespace heddle::core
