// The steps that a run has taken, in the words in which a plan is printed, and what they waited
// for, as the run shows it: by what its nodes were given, whose memory their values lay in, and the
// order in which it all happened. Not by a line of what makes plans.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/json.h"
#include "engine/graph/graph.h"
#include "engine/place/topology.h"
#include "engine/run/step_observer.h"

namespace heddle::test {

struct TakenStep {
  std::optional<std::uint64_t> bytes;  // of transfers and releases
  std::set<std::string> after;
  std::uint64_t begun = 0, ended = 0;  // counted through the run; 0: it has not
  std::thread::id thread;              // that ended it
  // The last node that this thread had begun by then.
  std::uint64_t thread_began = 0;
};
// By name: "run a on gpu:0", "transfer a.out gpu:0 -> gpu:1", "release a.out on gpu:1".
using TakenSteps = std::map<std::string, TakenStep>;

class StepTrace final : public engine::StepObserver {
 public:
  // `names`: by device of the run, the name that the plan has for it. `topology`: the plan's. Graph
  // and topology have to outlive it.
  StepTrace(const engine::Graph& graph, const engine::Topology& topology,
            std::map<std::string, std::string> names)
      : graph_(graph), topology_(topology), names_(std::move(names)) {}

  // After the run.
  TakenSteps take() { return std::move(steps_); }

  void began(engine::NodeIndex node, std::string_view device) override;
  void read(engine::NodeIndex reader, const engine::Source& source, std::uint32_t at) override;
  void done(engine::NodeIndex node, std::span<const engine::Value> outputs) override;
  void sent(const engine::Source& source, std::uint32_t from, std::uint32_t to, std::uint64_t bytes,
            const engine::Value& copy) override;
  void release(const engine::Source& source, const engine::Value& value) override;
  void release_copy(const engine::Source& source, std::uint32_t at,
                    const engine::Value& copy) override;

 private:
  using Storages = std::set<const void*>;
  // A value where it was made (at kWhereMade), or a copy of it.
  struct Key {
    engine::Source source;
    std::uint32_t at;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Held {
    std::string where;
    std::uint64_t bytes = 0;
    Storages storages;
    std::set<std::uint32_t> aliases;         // where it is held besides, in the same memory
    bool dropped = false, released = false;  // dropped: by the run; outputs may hold it still
    std::set<std::string> used_by;           // steps that make it or read it here
    std::vector<Key> holders, holds;  // outputs that share memory with it; the other way around
  };
  std::string device_name(std::uint32_t device) const;
  std::string name(const engine::Source& source) const;
  std::string release_name(const Key& key) const;
  Key memory_of(const engine::Source& source, std::uint32_t at) const;
  void end(const std::string& step);
  void release_unheld(const Key& key);

  const engine::Graph& graph_;
  const engine::Topology& topology_;
  const std::map<std::string, std::string> names_;
  std::mutex mutex_;  // of all that follows
  std::uint64_t now_ = 0;
  TakenSteps steps_;
  std::map<engine::NodeIndex, std::string> runs_;
  std::map<engine::NodeIndex, std::set<Key>> reads_;
  std::map<Key, Held> held_;
  std::map<std::thread::id, std::uint64_t> last_began_;
};

// What is wrong between a plan as it is printed, the elements of its JSON's "steps", and the run: a
// line each. Every step that is printed was taken and the other way around, with the same devices
// and bytes; each waited for exactly those that are printed behind it, which were done before it
// began; and values were released at once with the last of those.
std::vector<std::string> trace_faults(const std::vector<engine::Json>& printed,
                                      const TakenSteps& taken);

}  // namespace heddle::test
