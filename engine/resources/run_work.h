// What a run has enqueued on devices, as far as it can be given up. Streams are shared by all runs,
// and what a run has made goes into the cache as soon as it is enqueued; so a run that is cancelled
// gives up what is its own, and leaves what another run has come to depend on. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/device/cancel_flag.h"
#include "engine/graph/graph.h"

namespace heddle::engine {

class RunWork {
 public:
  // For launches of the node from now on: the same flag again, unless there is none yet, or others
  // hold what it has been used for so far.
  void renew(CancelFlagRef& flag, NodeIndex node);

  // How far the run is: what it makes from now on is made of nothing that is enqueued later.
  std::uint64_t mark() const { return mark_.load(std::memory_order_acquire); }
  // Somebody else uses what was made at this mark: nothing that came before is given up any more.
  // False: it has been, so that nobody knows what was made.
  bool hold(std::uint64_t mark);

  // All of it that nobody else holds, the newest first: nothing computes with what is missing.
  void give_up() noexcept;

  // The run has waited for its devices, and is over. False: something of it is missing.
  bool finish();
  // The same after a failure: the nodes that have left something out. What others have made since
  // is known to be there, once forget() has been called.
  std::vector<NodeIndex> lost() const;
  void forget();

 private:
  enum class State { open, given_up, over };
  struct Part {
    NodeIndex node;
    CancelFlagRef flag;
  };
  mutable std::mutex mutex_;
  State state_ = State::open;           // mutex_
  std::vector<Part> parts_;             // mutex_; in the order in which they began
  std::uint64_t held_until_ = 0;        // mutex_; of these parts
  std::atomic<std::uint64_t> mark_{0};  // how many parts there are
};

// Who made something that is kept, and when.
struct WorkMark {
  std::shared_ptr<RunWork> work = nullptr;  // nullptr: it does not come from a device
  std::uint64_t mark = 0;  // without work: the number of the run; 0: none has made it
};

}  // namespace heddle::engine
