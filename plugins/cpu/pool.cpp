#include "pool.h"

#include <algorithm>

#include "spin.h"

namespace heddle::cpu {

Pool::Pool(unsigned threads) {
  workers_.reserve(threads - 1);
  try {
    for (unsigned i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::exception&) {
    // The system gave fewer threads than asked for: results do not depend on the number, so go on
    // with those.
  }
}

Pool::~Pool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  announced_.fetch_add(1, std::memory_order_release);
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Pool::run(Loop& loop, Scratch& own) {
  const bool shared = loop.count > 1 && !workers_.empty();
  if (shared) {
    bool anyone_sleeps = false;
    {
      const std::lock_guard lock(mutex_);
      loops_.push_back(&loop);
      anyone_sleeps = sleeping_ > 0;
    }
    announced_.fetch_add(1, std::memory_order_release);
    if (anyone_sleeps) wake_.notify_all();
  }
  take_tiles(loop, own);
  if (shared) {
    {
      const std::lock_guard lock(mutex_);
      std::erase(loops_, &loop);
    }
    // Nobody can enter any more; those inside still finish their last tile.
    const auto all_left = [&] { return loop.helpers.load(std::memory_order_acquire) == 0; };
    if (!spin_until(all_left)) {
      std::unique_lock lock(mutex_);
      left_.wait(lock, all_left);
    } else {
      // A helper signals under the lock: passing through it means that no helper still touches the
      // loop.
      const std::lock_guard lock(mutex_);
    }
  }
  if (loop.error) std::rethrow_exception(loop.error);
}

void Pool::take_tiles(Loop& loop, Scratch& scratch) {
  for (;;) {
    const std::int64_t index = loop.next.fetch_add(1, std::memory_order_relaxed);
    if (index >= loop.count) return;
    try {
      if (loop.cancel->came()) throw NotWanted();
      scratch.reset();
      loop.call(loop.tile, index, scratch);
    } catch (...) {
      const std::lock_guard lock(loop.error_mutex);
      if (!loop.error || index < loop.error_index) {
        loop.error = std::current_exception();
        loop.error_index = index;
      }
      loop.next.store(loop.count, std::memory_order_relaxed);
    }
  }
}

Pool::Loop* Pool::find_loop() {
  for (Loop* loop : loops_)
    if (loop->next.load(std::memory_order_relaxed) < loop->count) return loop;
  return nullptr;
}

void Pool::work() {
  Scratch scratch;
  for (;;) {
    Loop* loop = nullptr;
    std::uint64_t seen = 0;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      seen = announced_.load(std::memory_order_acquire);
      loop = find_loop();
      if (loop != nullptr) loop->helpers.fetch_add(1, std::memory_order_relaxed);
    }
    if (loop != nullptr) {
      take_tiles(*loop, scratch);
      const std::lock_guard lock(mutex_);
      if (loop->helpers.fetch_sub(1, std::memory_order_release) == 1) left_.notify_all();
      continue;
    }
    const auto news = [&] { return announced_.load(std::memory_order_acquire) != seen; };
    if (spin_until(news)) continue;
    std::unique_lock lock(mutex_);
    ++sleeping_;
    wake_.wait(lock, [&] { return stopping_ || find_loop() != nullptr; });
    --sleeping_;
  }
}

}  // namespace heddle::cpu
