// The one lock of what keeps bytes of files in host memory, and what its threads wait for. Its
// parts (StagingPool, LeaseBook, ReadQueue, PageCache, StagedCopies, PieceReader, Prefetcher) share
// it: to make room for one of them another one evicts, and who waits is woken by any. Their
// functions are called under it unless they say otherwise; those that take the Lock may give it up
// meanwhile.
//
// Lock order: none is taken below this one but that of the room. Devices, files and watches are
// called without it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace heddle::engine {

struct HostMonitor {
  using Lock = std::unique_lock<std::mutex>;

  // While it lives the lock is given up, and others know that memory is being given back.
  class Freeing {
   public:
    Freeing(HostMonitor& monitor, Lock& lock) : monitor_(monitor), lock_(lock) {
      ++monitor_.freeing;
      lock_.unlock();
    }
    ~Freeing() {
      lock_.lock();
      --monitor_.freeing;
    }
    Freeing(const Freeing&) = delete;

   private:
    HostMonitor& monitor_;
    Lock& lock_;
  };

  // How often those who lack room look at events of others.
  static constexpr std::chrono::microseconds kPoll{500};
  // Those who lack a buffer, which is full again in a few of these.
  static constexpr std::chrono::microseconds kBufferPoll{50};

  std::mutex mutex;
  std::condition_variable changed;  // anything that somebody may wait for
  std::condition_variable filling;  // bytes for pinned memory are to be read
  unsigned freeing = 0;             // threads that give memory back; mutex
};

}  // namespace heddle::engine
