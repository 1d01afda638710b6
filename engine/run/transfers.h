// Values on their way to readers on other devices, or on the host: brought once for each value and
// destination of a run, shared by all readers there, and let go after the last of them. Any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/place/plan.h"
#include "engine/resources/environment.h"
#include "engine/resources/timeline.h"
#include "engine/transfer/arrival.h"

namespace heddle::core {

class Transfers {
 public:
  // All of them have to outlive this object. `timeline` nullptr: nobody watches.
  Transfers(const Graph& graph, const Plan& plan, std::vector<RunDevice>& devices,
            Timeline* timeline = nullptr)
      : graph_(graph),
        plan_(plan),
        devices_(devices),
        timeline_(timeline),
        used_(devices.size()),
        expected_(graph.nodes.size()) {}

  // The node is going to be computed, so that what it reads may be sent as soon as it is made.
  void expect(NodeIndex reader) { expected_[reader].store(true, std::memory_order_relaxed); }

  // The outputs of a node that has just been executed start on their way to all expected readers.
  // Between devices of different kinds the host waits for what it copies.
  void send(NodeIndex producer, std::span<const Value> outputs);

  // `value`, which is output `source`, where an input of `reader` with these port flags can use it:
  // on the reader's device, for what is enqueued from now on, or in host memory and finished.
  // Lives until the reader has finished, as `value` has to.
  const heddle_value* to_reader(const Value& value, const Source& source, NodeIndex reader,
                                std::uint32_t flags);

  // The reader needs its inputs no more; nobody needs the outputs of this producer any more.
  void finished(NodeIndex reader);
  void unread(NodeIndex producer);

  // Whether something was enqueued on a device.
  bool used(std::uint32_t device) const { return used_[device].load(std::memory_order_relaxed); }
  // Copied between devices, and between devices and the host, by this run's transfers.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::mutex mutex;  // held while it is started: a second reader waits for the first one's
    Value value;       // at its destination; nullptr: not started
    std::vector<std::shared_ptr<Arrival>> arrivals;
    std::uint32_t readers = 0;  // links of the graph that have not read it
  };
  struct Reading {
    Source source;
    std::uint32_t destination;
    friend auto operator<=>(const Reading&, const Reading&) = default;
  };
  std::uint32_t destination(NodeIndex reader, std::uint32_t flags) const;
  template <class Visit>
  void for_each_reading(NodeIndex reader, Visit&& visit) const;
  void count_readers();  // REQUIRES: mutex_ held
  std::shared_ptr<Entry> entry(const Reading& reading);
  void start(Entry& entry, const Value& value, const Source& source, std::uint32_t destination);

  const Graph& graph_;
  const Plan& plan_;
  std::vector<RunDevice>& devices_;
  Timeline* const timeline_;
  std::vector<std::atomic<bool>> used_;
  std::vector<std::atomic<bool>> expected_;  // by node
  std::atomic<bool> any_{false};
  std::atomic<std::uint64_t> bytes_{0};
  std::mutex mutex_;  // of the two maps; taken before an entry's
  std::map<Reading, std::shared_ptr<Entry>> entries_;
  struct Link {
    NodeIndex reader;
    bool lazy;
  };
  std::map<Reading, std::vector<Link>> readers_;  // in the whole graph; made when first asked
};

}  // namespace heddle::core
