// One session at a time plans and loads a model on a device: the next one then finds the weights in
// use, and counts them as shared instead of as room that it lacks. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include "engine/base/hash.h"

namespace heddle::engine {

class LoadTurns {
 public:
  // Ends when this goes; the turns outlive it.
  class Turn {
   public:
    Turn(Turn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), model_(other.model_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->end(model_);
    }

   private:
    friend class LoadTurns;
    Turn(LoadTurns* turns, Hash128 model) : turns_(turns), model_(model) {}
    LoadTurns* turns_;
    Hash128 model_;
  };

  // Throws cancelled where `cancelled` says so while it waits. Whoever takes several takes them in
  // an order that is the same for all.
  Turn take(Hash128 model, const std::function<bool()>& cancelled);
  // Of all devices, so far: where it has changed, what was planned before may be planned better.
  static std::uint64_t ended() { return ended_.load(std::memory_order_acquire); }

 private:
  void end(Hash128 model);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<Hash128> taken_;  // mutex_
  static std::atomic<std::uint64_t> ended_;
};

}  // namespace heddle::engine
