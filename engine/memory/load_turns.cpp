#include "engine/memory/load_turns.h"

#include <chrono>

#include "engine/base/error.h"

namespace heddle::engine {

std::atomic<std::uint64_t> LoadTurns::ended_{0};

LoadTurns::Turn LoadTurns::take(Hash128 model, const std::function<bool()>& cancelled) {
  constexpr std::chrono::milliseconds kAskAgain{20};  // nobody wakes who is cancelled
  std::unique_lock lock(mutex_);
  while (!taken_.insert(model).second) {
    changed_.wait_for(lock, kAskAgain);
    if (cancelled && cancelled())
      throw Error(Code::cancelled, "cancelled while another run loaded the model");
  }
  return Turn(this, model);
}

void LoadTurns::end(Hash128 model) {
  const std::lock_guard lock(mutex_);
  taken_.erase(model);
  ended_.fetch_add(1, std::memory_order_release);
  changed_.notify_all();
}

}  // namespace heddle::engine
