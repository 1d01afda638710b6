// Values on their way to readers on other devices, or on the host: brought once for each value and
// destination of a run, shared by all readers there, and released after the last of them, as
// value_flow.h says. Any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/place/value_flow.h"
#include "engine/resources/environment.h"
#include "engine/resources/timeline.h"
#include "engine/run/ready_nodes.h"
#include "engine/run/step_observer.h"
#include "engine/transfer/transfer.h"

namespace heddle::engine {

// Over 15 members: half of them are what a run lends it; the rest is by value of the workflow, and
// changes together when a value is made, copied or read for the last time.
class Transfers {
 public:
  // A link that reads what was sent to `to` from where `source` was made.
  struct Reading {
    Source source;
    std::uint32_t to;  // a device, or kHostSide
    friend auto operator<=>(const Reading&, const Reading&) = default;
  };
  // Links that read a copy and never the value itself: so many, of one output.
  struct Sent {
    std::uint32_t port, links;
  };

  // All of them have to outlive this object; the schedule knows all that it activates
  // before anything is sent. `timeline`, `steps` nullptr: nobody watches.
  Transfers(const RunGraph& run, const Plan& plan, const Schedule& schedule,
            Environment& environment, Timeline* timeline, StepObserver* steps)
      : run_(run),
        plan_(plan),
        schedule_(schedule),
        topology_(environment.topology),
        devices_(environment.devices),
        timeline_(timeline),
        steps_(steps),
        used_(devices_.size()),
        expected_(run.size()) {}

  // The node is going to be computed, so that what it reads may be sent as soon as it is made.
  void expect(NodeIndex reader) { expected_[reader].store(true, std::memory_order_relaxed); }

  // A node was added to the run. With the run's lock, as the next.
  void add(NodeIndex) { expected_.add_empty(); }
  // The same of a node that was added: whatever it reads may have been sent already. visit(source)
  // for each of its links that reads what was sent, and never the value itself.
  template <class Visit>
  void expect_added(NodeIndex reader, Visit&& visit);

  // The outputs of a node that has just been executed start on their way to all expected readers.
  // Between devices of different kinds the host waits for what it copies. Adds to `sent` what reads
  // a copy from now on, as read_at() has it.
  void send(NodeIndex producer, std::span<const Value> outputs, std::vector<Sent>& sent) {
    for (const Value& output : outputs)
      if (output && may_hold_tensors(*output)) return send_tensors(producer, outputs, sent);
  }

  // `value`, which is output `source`, where an input of `reader` with these port flags can use it:
  // on the reader's device, for what is enqueued from now on, or in host memory and finished.
  // Lives until the reader has finished, as `value` has to. Links that read what was sent do not
  // look at `value`, which may be gone.
  const heddle_value* to_reader(const Value& value, const Source& source, NodeIndex reader,
                                std::uint32_t flags) {
    const bool stays = !any_sent_.load(std::memory_order_relaxed) && steps_ == nullptr &&
                       (!value || !may_hold_tensors(*value));
    return stays ? value.get() : bring(value, source, reader, flags);
  }

  // The copy that such a link reads, in full; empty: it reads `value`.
  Value sent_copy(const Source& source, NodeIndex reader, std::uint32_t flags);

  // The reader needs its inputs no more. Adds to `copies` those that send() had sent to it.
  void finished(NodeIndex reader, std::vector<Reading>& copies) {
    if (any_.load(std::memory_order_relaxed)) finish_copies(reader, copies);
  }
  // What a link into `reader` reads, if it is not the value itself.
  Reading reading(const Source& source, NodeIndex reader, std::uint32_t flags) const {
    return {source, (flags & HEDDLE_PORT_HOST) != 0 ? kHostSide : side_of(run_.place(reader))};
  }

  // Whether something was enqueued on a device.
  bool used(std::uint32_t device) const { return used_[device].load(std::memory_order_relaxed); }
  // Copied between devices, and between devices and the host, by this run's transfers.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::mutex mutex;  // held while it is started: a second reader waits for the first one's
    Value value;       // at its destination; nullptr: not started
    std::vector<std::shared_ptr<Transfer>> transfers;
    std::uint32_t readers = 0;  // links that have not read it
    bool sent = false;          // they never read the value itself
  };
  // Most values that pass are numbers and texts: they do without a call.
  static bool may_hold_tensors(const heddle_value& value) {
    const heddle_kind kind = kind_of(value);
    return kind == HEDDLE_KIND_TENSOR || kind == HEDDLE_KIND_LIST || kind == HEDDLE_KIND_RECORD;
  }
  void send_tensors(NodeIndex producer, std::span<const Value> outputs, std::vector<Sent>& sent);
  const heddle_value* bring(const Value& value, const Source& source, NodeIndex reader,
                            std::uint32_t flags);
  void finish_copies(NodeIndex reader, std::vector<Reading>& copies);
  template <class Visit>
  void for_each_reading(NodeIndex reader, Visit&& visit) const;
  void count_readers();                // REQUIRES: mutex_ held
  void count_links(NodeIndex reader);  // REQUIRES: mutex_ held
  std::uint32_t home_of(const Source& source) const;
  std::shared_ptr<Entry> entry(const Reading& reading);
  std::shared_ptr<Entry> find_sent(const Reading& reading);
  void start(Entry& entry, const Value& value, const Reading& reading);
  std::uint32_t side_of_memory(const Tensor& tensor) const;
  bool is_at(const Value& value, std::uint32_t to) const;

  const RunGraph& run_;
  const Plan& plan_;
  const Schedule& schedule_;
  const Topology& topology_;
  std::vector<RunDevice>& devices_;
  Timeline* const timeline_;
  StepObserver* const steps_;
  std::vector<std::atomic<bool>> used_;
  GrowingVector<std::atomic<bool>> expected_;       // by node
  std::atomic<bool> any_{false}, any_sent_{false};  // there have been entries; and sent ones
  std::atomic<std::uint64_t> bytes_{0};
  std::mutex mutex_;  // of the two maps; taken before an entry's
  std::map<Reading, std::shared_ptr<Entry>> entries_;
  struct Link {
    NodeIndex reader;
    bool lazy;
  };
  std::map<Reading, std::vector<Link>> readers_;  // that may read; made when first asked
  std::optional<ValueHomes> homes_;               // made with readers_
  std::vector<NodeIndex> added_;                  // expected, and not among readers_ yet
};

template <class Visit>
void Transfers::expect_added(NodeIndex reader, Visit&& visit) {
  const std::lock_guard lock(mutex_);
  expect(reader);
  if (!homes_) return added_.push_back(reader);
  for_each_reading(reader, [&](const Reading& reading, bool) {
    const auto at = entries_.find(reading);
    if (at != entries_.end()) {
      ++at->second->readers;
      if (at->second->sent) visit(reading.source);
    } else {
      // Those that have read it need it no more, and do not count when it is sent once more.
      const auto found = readers_.find(reading);
      if (found != readers_.end())
        std::erase_if(found->second, [this](const Link& l) { return schedule_.is_done(l.reader); });
    }
  });
  count_links(reader);
}
// visit(reading, whether it is read only when the node asks for it)
template <class Visit>
void Transfers::for_each_reading(NodeIndex reader, Visit&& visit) const {
  for_each_link(run_.node(reader), [&](const Source& source, std::uint32_t flags) {
    if ((flags & HEDDLE_PORT_PASS) == 0)
      visit(reading(source, reader, flags), (flags & HEDDLE_PORT_LAZY) != 0);
  });
}

}  // namespace heddle::engine
