// What is kept of a run that goes on later, in this process or another: the states of the calls
// that have begun, and what those that have ended made, as far as it is still wanted. All in host
// memory, known by the ids of nodes, so it outlives plans, placements and devices. Thread-safe.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/base/hash.h"
#include "engine/graph/graph.h"
#include "engine/place/plan.h"
#include "engine/run/disk_cached.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

// Whether a value outlives its devices and its process: numbers, texts, lists, records, tensors in
// the usual layout.
bool may_be_kept(const heddle_value& value);

// One call of a node: for an element of a list, or the first and only one.
struct CallId {
  std::string node;
  std::size_t element = 0;
  auto operator<=>(const CallId&) const = default;
};

struct SavedContent {
  bool is_empty() const { return states.empty() && outputs.empty() && ended.empty(); }

  struct State {
    Hash128 key;  // of the node's outputs, in the run that has saved it; Hash128(): of another
                  // process
    Value value;
    bool has_ended = false;  // of an element of a list: `value` is the list of its outputs
  };
  struct Outputs {
    Hash128 key;                // the same
    std::vector<Value> values;  // empty ones are not kept: nobody wanted them any more
  };
  std::map<CallId, State> states;
  std::map<std::string, Outputs> outputs;  // of finished nodes
  std::set<std::string> ended;             // sinks: what they do for the user is done
  // Where a node was placed, as far as bytes depend on it.
  struct Place {
    std::string device_class;       // kind, model, compute type
    std::string parallel, devices;  // of a mode that changes the order of sums; else empty
    bool operator==(const Place&) const = default;
  };
  std::map<std::string, Place> places;  // of nodes on devices
};

class SavedRun {
 public:
  void set(SavedContent content);
  SavedContent content() const { return *content_.lock(); }
  bool is_empty() const { return is_empty_; }
  void clear() { set({}); }

  void keep(CallId call, SavedContent::State state);
  // Empty: the call begins.
  SavedContent::State state_of(const CallId& call) const;
  // How far the run is: `outputs` in the place of those that were kept before.
  struct Ended {
    std::set<std::string> sinks, stated;  // nodes; those with states, which are of no use any more
  };
  void settle(std::map<std::string, SavedContent::Outputs> outputs, const Ended& ended);
  std::vector<Value> outputs_of(const std::string& node) const;
  // Where the run was planned.
  void set_places(std::map<std::string, SavedContent::Place> places) {
    content_.lock()->places.swap(places);
  }

 private:
  std::atomic<bool> is_empty_{true};
  Guarded<SavedContent> content_;
};

std::map<std::string, SavedContent::Place> places_of(const Graph& graph, const Plan& plan,
                                                     const Topology& topology);
// Nodes stay on devices of the class that they were on, where there are others, too: by hints.
void keep_places(const SavedContent& saved, const Topology& topology, Graph& graph);
// Throws unsupported for a node that is placed where it would give other bytes, with both places.
void check_places(const SavedContent& saved, const Graph& graph, const Plan& plan,
                  const Topology& topology);

// Cuts the graph where the run goes on: nodes whose outputs are kept need not run again, and stand
// among `cached` like those that were found on disk; sinks that have ended are none any more; and
// what nobody needs then leaves the order. `made_of`: by node, the key of what it is made of, for
// outputs of another process.
void take_saved(const SavedContent& saved, std::span<const Source> wanted,
                std::span<const Hash128> made_of, Graph& graph, DiskCachedNodes& cached);

}  // namespace heddle::engine
