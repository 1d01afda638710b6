// Stream: work in order, on a thread of its own; or, when its device shuffles, by whoever waits for
// it, in an order that is drawn (shuffler.h). Event: one point in a stream. Enqueueing is for one
// thread at a time per stream, waiting for any thread.
//
// As on the cpu device, work that throws poisons its stream: what was enqueued behind it is skipped
// until wait() on an event behind it has reported the failure. What was enqueued before its device
// died is dropped, and the events behind it tell that; nothing needs to be reported then.
//
// Workers take no lock but their stream's and their events', and the inner cpu stream is one for
// each stream: order that the engine forgot to ask for is not made by accident, and the thread
// sanitizer sees that it is missing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "captured_graph.h"
#include "clock.h"
#include "heddle/device.hpp"
#include "pacer.h"

namespace heddle::fake {

class Device;
class CpuStream;

struct Failure {
  heddle_code code;
  std::string message;
};
using FailureRef = std::shared_ptr<const Failure>;

// The failure of a stream and since which piece of work it is known.
struct StreamFailure {
  std::mutex mutex;
  std::uint64_t enqueued = 0;   // mutex
  FailureRef first;             // mutex
  bool reported = false;        // mutex
  std::uint64_t resume_at = 0;  // mutex; first work that runs again once reported
};

// What an event's handle and the work that refers to it share.
class EventState {
 public:
  struct Record {
    std::uint64_t number = 0;  // of the times it was recorded; 0: never
    Clock::Point time{};
  };
  // It moves to a new point of a stream.
  std::uint64_t expect(std::shared_ptr<StreamFailure> stream, Clock::Point time);
  Record last() const;
  void reach(std::uint64_t number, FailureRef failure);
  FailureRef wait(std::uint64_t number);  // blocks; the failure at that point or a later one
  bool reached(std::uint64_t number) const;
  // It moves to a point of what is recorded; recorded(): which, while that goes on.
  void record_in(std::weak_ptr<CapturedGraph> graph, std::size_t mark);
  std::pair<std::shared_ptr<CapturedGraph>, std::size_t> recorded() const;
  void report(
      const FailureRef& failure);  // its stream's failure is known: work enqueued from now on runs

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Record last_;                            // mutex_
  std::uint64_t reached_ = 0;              // mutex_
  FailureRef failure_;                     // mutex_
  std::shared_ptr<StreamFailure> stream_;  // mutex_; of the last record
  std::weak_ptr<CapturedGraph> graph_;     // mutex_
  std::size_t mark_ = 0;                   // mutex_
};
using EventRef = std::shared_ptr<EventState>;

class Stream {
 public:
  explicit Stream(Device& device,
                  std::uint32_t ordinal);  // device is borrowed and outlives the stream
  ~Stream();                               // finishes what is queued
  Stream(const Stream&) = delete;

  // Runs when everything enqueued before is done; what it throws becomes the stream's failure,
  // `what` in front.
  using Work = std::function<void(CpuStream&)>;
  void enqueue(std::string what, Work work);
  void record(const EventRef& event);
  void wait_for(const EventRef& event);
  // What is enqueued from now on is wanted only until this comes.
  void set_cancel(device::Cancel cancel) { cancel_ = std::move(cancel); }

  // From here to take_captured_graph(), launches are kept, and the order among streams that record
  // together; all else is refused.
  void begin_capture() {
    captured_graph_ = std::make_shared<CapturedGraph>(device_);
    lane_ = 0;
  }
  std::shared_ptr<CapturedGraph> take_captured_graph();
  void leave_capture() { captured_graph_ = nullptr; }
  std::size_t lane() const { return lane_; }
  CapturedGraph* captured_graph() const {
    return captured_graph_.get();
  }  // nullptr: it does not record

  Device& device() const { return device_; }
  Clock::Track& track() { return track_; }
  Pacer& pacer() { return pacer_; }

  // For the shuffler, one thread at a time: whether the first piece of work may run, and running
  // it.
  bool can_run();
  bool is_empty();
  void run_one();

 private:
  struct Item {
    bool is_order = false;  // record or wait: never skipped
    std::string what;
    std::uint64_t number = 0, life = 0;
    device::Cancel cancel;                     // of an op
    Work work;                                 // of an op
    std::function<void(bool is_stale)> order;  // of a record or wait
    std::function<bool()> ready;               // whether it would not block; empty: never blocks
  };
  void push(Item item);
  void run();
  void run_item(Item& item) noexcept;
  void try_item(Item& item);
  bool skips(const Item& item);
  void poison(FailureRef failure);

  Device& device_;
  const std::shared_ptr<StreamFailure> failure_ = std::make_shared<StreamFailure>();
  const FailureRef no_memory_ = std::make_shared<const Failure>(
      Failure{HEDDLE_OUT_OF_MEMORY, "a fake device: host memory is exhausted"});
  Pacer pacer_;  // its worker
  Clock::Track track_;
  device::Cancel cancel_;  // who enqueues
  std::shared_ptr<CapturedGraph> captured_graph_;
  std::size_t lane_ = 0;            // of it
  std::unique_ptr<CpuStream> cpu_;  // made by the first work that runs

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Item> queue_;  // mutex_
  bool stopping_ = false;   // mutex_
  std::thread thread_;      // made by the first push
};

}  // namespace heddle::fake
