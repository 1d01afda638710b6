// Values on their way to readers on other devices, or on the host: brought once for each value and
// destination of a run, shared by all readers there, and let go after the last of them. Any thread.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "engine/plan/plan.h"
#include "engine/run/environment.h"

namespace heddle::core {

class Transfers {
 public:
  // All three have to outlive this object.
  Transfers(const Graph& graph, const Plan& plan, std::vector<RunDevice>& devices)
      : graph_(graph), plan_(plan), devices_(devices), used_(devices.size()) {}

  // `value`, which is output `source`, where an input of `reader` with these port flags can use it:
  // on the reader's device, or in host memory and finished. Blocks while it is brought. Lives until
  // the reader has finished, as `value` has to.
  const heddle_value* to_reader(const Value& value, const Source& source, NodeIndex reader,
                                std::uint32_t flags);

  // The reader needs its inputs no more; nobody needs the outputs of this producer any more.
  void finished(NodeIndex reader);
  void unread(NodeIndex producer);

  // Whether something was enqueued on a device.
  bool used(std::uint32_t device) const { return used_[device].load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::mutex mutex;  // held while it is brought: a second reader waits for the first one's
    Value value;
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

  const Graph& graph_;
  const Plan& plan_;
  std::vector<RunDevice>& devices_;
  std::vector<std::atomic<bool>> used_;
  std::atomic<bool> any_{false};
  std::mutex mutex_;  // of the two maps; taken before an entry's
  std::map<Reading, Entry> entries_;
  std::map<Reading, std::uint32_t> readers_;  // in the whole graph; made with the first entry
};

}  // namespace heddle::core
