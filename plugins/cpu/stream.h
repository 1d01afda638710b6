// Stream: work done in order by one thread of its own; large pieces spread over the device's Pool.
// Event: one point in a stream. The engine owns both through the device table; enqueueing is for
// one thread at a time per stream, waiting for any thread.
//
// A piece of work that throws poisons the stream: what was enqueued after it is skipped until
// wait() on an event behind it has reported the failure; what is enqueued after that report runs
// again. Waiting for an event of a poisoned stream poisons the waiting stream too, because its
// inputs were never written. Memory stays valid throughout.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "heddle/device.hpp"
#include "pool.h"
#include "scratch.h"
#include "work.h"

namespace heddle::cpu {

struct Failure {
  heddle_code code;
  std::string message;
};

class Stream;

// What an event's handle and the work that refers to it share: the handle may be freed while work
// is still queued.
class EventState {
 public:
  // Announces that the event moves to a new point of the stream; gives the number of that point.
  std::uint64_t expect(const std::shared_ptr<struct StreamLink>& stream);
  std::uint64_t expected() const;
  // The stream is at the point. failure: the first of the stream so far, or nullptr.
  void reach(std::uint64_t point, std::shared_ptr<const Failure> failure);
  // Blocks. Gives the failure at that point, or nullptr.
  std::shared_ptr<const Failure> wait(std::uint64_t point);
  bool reached() const;
  // When the stream came to the last point; nothing before that.
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> time() const;
  // Tells the stream that its failure is known, so that work enqueued from now on runs.
  void report(const std::shared_ptr<const Failure>& failure);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t expected_ = 0;               // mutex_
  std::atomic<std::uint64_t> reached_{0};    // raised under mutex_
  Clock::time_point time_;                   // mutex_; of reached_
  std::shared_ptr<const Failure> failure_;   // mutex_
  std::shared_ptr<struct StreamLink> link_;  // mutex_; the stream of the last expect()
};

// The failure of a stream and since which piece of work it is known. Outlives the stream for late
// wait() calls.
struct StreamLink {
  std::mutex mutex;
  std::uint64_t enqueued = 0;              // mutex
  std::shared_ptr<const Failure> failure;  // mutex
  bool reported = false;                   // mutex
  std::uint64_t resume_at = 0;             // mutex; first work that runs again once reported
};

// Work in its order, on a thread of its own.
// Over 15 members: the queue, its thread and what the running work computes with share one lock and
// one life; who enqueues and who runs meet in all of them.
class Stream {
 public:
  // name begins every failure: "cpu:0". pool is borrowed and must outlive the stream.
  Stream(Pool& pool, std::string name);
  ~Stream();  // finishes what is queued
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // what: for failures, "linear/1 (onednn)"; two static strings, the second may be nullptr.
  struct What {
    const char* op;
    const char* kernel;
  };
  void enqueue(What what, Work work);
  void record(const std::shared_ptr<EventState>& event);
  void wait_for(const std::shared_ptr<EventState>& event);
  // What is enqueued from now on is wanted only until this comes.
  void set_cancel(device::Cancel cancel) { cancel_ = std::move(cancel); }

  // For work while it runs.
  Pool& pool() { return pool_; }
  Scratch& call_scratch() { return call_scratch_; }  // whole call; reset before each piece of work
  template <class Tile>
  void parallel_for(std::int64_t count, Tile&& tile) {
    pool_.parallel_for(tile_scratch_, running_, count, static_cast<Tile&&>(tile));
  }
  // For tiles that take long: throws NotWanted. Any thread of the pool.
  void check_wanted() const {
    if (running_.came()) throw NotWanted();
  }

 private:
  enum class Kind { kOp, kOrder };  // kOrder runs in a poisoned stream, too
  struct Item {
    Kind kind = Kind::kOp;
    What what{};
    std::uint64_t number = 0;
    device::Cancel cancel;
    Work work;
  };

  void push(Kind kind, What what, Work work);
  Item pop();  // REQUIRES: mutex_ held, not empty
  void run();
  void run_item(Item& item) noexcept;
  void try_item(Item& item);
  void poison(std::shared_ptr<const Failure> failure);
  bool skips(std::uint64_t number);

  Pool& pool_;
  const std::string name_;
  const std::shared_ptr<const Failure> no_memory_;  // for when there is none to make one
  const std::shared_ptr<StreamLink> link_ = std::make_shared<StreamLink>();
  Scratch call_scratch_;
  Scratch tile_scratch_;
  device::Cancel cancel_;   // of what is enqueued; who enqueues
  device::Cancel running_;  // of the work that runs; the stream's thread, between loops

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Item> ring_;            // mutex_; size is a power of two
  std::size_t head_ = 0;              // mutex_
  std::atomic<std::size_t> size_{0};  // changed under mutex_
  bool sleeping_ = false;             // mutex_
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace heddle::cpu
