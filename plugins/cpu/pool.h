// Pool: the threads of one CPU device. parallel_for hands out the tiles of a kernel to whoever is
// free; which thread runs which tile is left open, so a kernel must cut its outputs into tiles by
// shape alone and never add across tiles. Owned by the device; thread-safe: several streams may run
// loops at the same time and share the threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "heddle/device.hpp"
#include "scratch.h"

namespace heddle::cpu {

// Thrown where work stops because nobody wants it any more.
struct NotWanted {};

class Pool {
 public:
  // threads counts the caller of parallel_for: threads - 1 are started. REQUIRES: threads >= 1.
  explicit Pool(unsigned threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  unsigned threads() const { return static_cast<unsigned>(workers_.size()) + 1; }

  // Calls tile(index, scratch) for every index in [0, count) and returns when all are done. own is
  // the caller's scratch. The first tile that throws (by index, among those that ran) ends the loop
  // early and is rethrown. When `cancel` comes no tile begins any more; then NotWanted is thrown.
  template <class Tile>
  void parallel_for(Scratch& own, const device::Cancel& cancel, std::int64_t count, Tile&& tile) {
    using Callable = std::remove_reference_t<Tile>;
    Loop loop{count, const_cast<void*>(static_cast<const void*>(&tile)),
              [](void* what, std::int64_t index, Scratch& scratch) {
                (*static_cast<Callable*>(what))(index, scratch);
              },
              &cancel};
    run(loop, own);
  }

 private:
  struct Loop {
    std::int64_t count;
    void* tile;
    void (*call)(void* tile, std::int64_t index, Scratch& scratch);
    const device::Cancel* cancel;
    std::atomic<std::int64_t> next{0};
    std::atomic<int> helpers{0};  // pool threads inside; raised under mutex_
    std::mutex error_mutex{};
    std::int64_t error_index = 0;  // error_mutex
    std::exception_ptr error{};    // error_mutex
  };

  void run(Loop& loop, Scratch& own);
  static void take_tiles(Loop& loop, Scratch& scratch);
  void work();
  Loop* find_loop();  // REQUIRES: mutex_ held

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable left_;  // a helper left a loop
  std::vector<Loop*> loops_;      // mutex_; loops that may still have tiles
  bool stopping_ = false;         // mutex_
  int sleeping_ = 0;              // mutex_
  std::atomic<std::uint64_t> announced_{
      0};  // loops ever started: what idle threads watch while they spin
  std::vector<std::thread> workers_;
};

}  // namespace heddle::cpu
