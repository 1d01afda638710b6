// What is wanted next, and reading it before anybody asks: the other half of host_weights.h.
#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "engine/memory/host_weights.h"
#include "engine/memory/staging_sizes.h"

namespace heddle::core {

Expectation::Expectation(Expectation&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), forecast_(std::move(other.forecast_)) {}

Expectation& Expectation::operator=(Expectation&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(forecast_, other.forecast_);
  return *this;
}

void Expectation::end() {
  if (owner_ == nullptr) return;
  owner_->end(*forecast_);
  owner_ = nullptr;
  forecast_ = nullptr;
}

Expectation HostWeights::expect(std::span<const FilePart> parts, UseOrder order,
                                std::shared_ptr<const Device> reader, ReadWatch watch) {
  Expectation expectation;
  expectation.forecast_ = std::make_shared<ExpectedParts>();
  ExpectedParts& forecast = *expectation.forecast_;
  forecast.order = order;
  forecast.reader = std::move(reader);
  forecast.watch = std::move(watch);
  expectation.owner_ = this;  // from here on it is undone when something throws
  forecast.items.reserve(parts.size());  // an item that has its use is among them in any case
  const Lock lock(mutex_);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    HostItem& item = own_item_of(parts[i]);
    forecast.items.push_back(&item);
    item.reading_ahead_failed = false;
    // What passes through a device is wanted in the next run, too.
    if (order == UseOrder::cyclic) item.keep_plain = true;
    if (item.uses.empty() || item.uses.back().forecast != &forecast)
      item.uses.push_back({&forecast, {}});
    item.uses.back().at.push_back(i);
    if (item.bytes <= kSmallBuffer)
      forecast.largest_small = std::max(forecast.largest_small, item.bytes);
    else if (item.bytes <= staging_share() / kLargeBuffers)
      forecast.largest = std::max(forecast.largest, item.bytes);
  }
  forecasts_.push_back(&forecast);
  try {
    while (readers_.size() < options_.readers) readers_.emplace_back([this] { run_reader(); });
    while (readers_.size() < options_.readers + options_.copiers)
      readers_.emplace_back([this] { run_copier(); });
  } catch (const std::system_error&) {  // no more threads are to be had: whoever asks reads, too
  } catch (const std::bad_alloc&) {
  }
  changed_.notify_all();
  return expectation;
}

void HostWeights::end(ExpectedParts& forecast) {
  Lock lock(mutex_);
  std::erase(forecasts_, &forecast);
  std::set<Key> keys;
  for (HostItem* item : forecast.items) {
    std::erase_if(item->uses, [&](const ItemUse& use) { return use.forecast == &forecast; });
    try {
      keys.insert({key_of(*item->file), item->offset, item->bytes});
    } catch (const std::bad_alloc&) {  // it stays until somebody needs the room
    }
  }
  for (const Key& key : keys) {
    for (;;) {
      const auto found = items_.find(key);
      if (found == items_.end()) break;
      HostItem& item = *found->second;
      const auto staged = std::ranges::find_if(item.staged, [&](const auto& entry) {
        return entry.second.leases == 0 && entry.second.reading == 0 &&
               item.next_use_by(entry.first) == kUnexpected && !is_wanted_soon(item);
      });
      if (staged == item.staged.end()) break;
      unstage(lock, item, staged);
    }
    for (const auto which : {&HostItem::pages, &HostItem::buffer}) {
      const auto found = items_.find(key);
      if (found == items_.end()) break;
      HostItem& item = *found->second;
      if ((item.*which).leases == 0 && is_of_no_use(item, item.*which)) {
        let_go_of(lock, item, which);
      } else {
        drop_if_idle(item);
      }
    }
  }
  while (forecasts_.empty()) {
    if (idle_staging_.take_plain({}) == nullptr) break;
  }
  changed_.notify_all();
  changed_.wait(lock, [&] { return forecast.watching == 0; });
}

HostWeights::Ahead HostWeights::read_ahead(Lock& lock) {
  // Who asks now takes room first, and so does a device that lacks it.
  if (served_ticket_ != next_ticket_ || others_lack_room_) return Ahead::nothing;
  HostItem* nearest = nullptr;
  const ExpectedParts* wanted_by = nullptr;
  std::uint64_t wanted_in = kUnexpected, bytes_before = 0;
  for (const ExpectedParts* forecast : forecasts_) {
    const std::size_t count = forecast->items.size(), from = forecast->position;
    const std::size_t steps = forecast->order == UseOrder::cyclic ? count : count - from;
    std::uint64_t bytes = 0;
    for (std::size_t step = 0; step < std::min<std::uint64_t>(steps, wanted_in); ++step) {
      HostItem* const item = forecast->items[(from + step) % count];
      const HostCopy& copy = item->*choose_copy(*item, *forecast->reader);
      bytes += item->bytes;
      const bool is_staged = is_staged_ahead(*item, *forecast);
      if (is_staged && !item->staged.empty()) continue;  // for whichever device
      if (is_staged && copy.state == CopyState::loading) break;  // another device's; soon there
      const bool is_source = is_staged && copy.state == CopyState::ready;
      if ((copy.state != CopyState::absent && !is_source) || item->reading_ahead_failed) continue;
      nearest = item;
      wanted_by = forecast;
      wanted_in = step;
      bytes_before = bytes - item->bytes;
      break;
    }
  }
  if (nearest == nullptr) return Ahead::nothing;
  const std::shared_ptr<const Device> reader = wanted_by->reader;  // they may end meanwhile
  // What is expected again goes only for what is wanted very soon. Otherwise everything would be
  // let go as soon as it was used, to make room for what comes next, and nothing of a cycle that is
  // larger than the room would ever be found here: with the least recently used it is the same.
  const bool is_soon =
      wanted_in < 2 || bytes_before <= std::min(options_.ahead_bytes, room_->limit() / 8);
  if (!is_soon) wanted_in = kUnexpected - 1;
  if (is_staged_ahead(*nearest, *wanted_by)) return stage_ahead(lock, *nearest, reader, wanted_in);
  Hold hold{nearest, choose_copy(*nearest, *reader)};
  ++(nearest->*hold.copy).leases;
  ++beginning_;
  Started started = Started::again;
  try {
    started = start(lock, *nearest, hold.copy, reader, Need::ahead, wanted_in);
  } catch (const std::exception&) {
    nearest->reading_ahead_failed = true;  // whoever asks for it is told
  }
  --beginning_;
  if (started == Started::under_way && !(nearest->*hold.copy).is_pinned() &&
      !reader->host_visible())
    nearest->keep_plain = true;
  if (started == Started::no_room) {  // and nothing has changed that anybody waits for
    --(nearest->*hold.copy).leases;
    return Ahead::no_room;
  }
  give_back_one(lock, std::move(hold));
  return Ahead::begun;
}

// False: there is nothing to do now.
bool HostWeights::read_or_read_ahead(Lock& lock) {
  if (const auto piece = next_piece(nullptr)) {
    read(lock, *piece);
    return true;
  }
  lock.unlock();
  room_->refresh();
  lock.lock();
  const Ahead ahead = read_ahead(lock);
  if (ahead == Ahead::begun || stopping_ || !loading_.empty()) return true;
  const bool lacks_buffer = ahead == Ahead::no_buffer;
  if ((ahead == Ahead::no_room || lacks_buffer) && !pending_.empty()) {
    changed_.wait_for(lock, lacks_buffer ? kBufferPoll : kPoll);
    poll_passed(lock);
    return true;
  }
  return false;
}

// What fails here is tried once more by whoever asks for it, and told there.
void HostWeights::run_reader() {
  Lock lock(mutex_);
  while (!stopping_) {
    bool is_busy = false;
    try {
      is_busy = read_or_read_ahead(lock);
    } catch (const std::exception&) {
      if (!lock.owns_lock()) lock.lock();
    }
    if (!is_busy && !stopping_) changed_.wait(lock);
  }
}

void HostWeights::run_copier() {
  Lock lock(mutex_);
  while (!stopping_) {
    if (const auto piece = next_piece(nullptr, true)) {
      read(lock, *piece);
    } else {
      filling_.wait(lock);
    }
  }
}

}  // namespace heddle::core
