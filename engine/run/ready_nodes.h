// Which nodes of a run are computed, what each of them still waits for, which one starts next, and
// who will still read what. Bookkeeping alone: nothing is executed here. One thread at a time.
//
// A lane runs one node at a time: there is one for each device and one for the host. Inside of a
// lane nodes start by rank, their position in the order of the plan, or else of the graph. A node that takes several lanes
// waits at the head of each until all are free; meanwhile nothing overtakes it there, so it is
// never starved, and the node of the lowest rank can always start.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/place/plan.h"

namespace heddle::core {

class Schedule {
 public:
  static constexpr NodeIndex kNone = kGraphInputs;

  // Both have to outlive this object.
  Schedule(const Graph& graph, const Plan& plan, std::uint32_t device_count);

  // The node takes these lanes together, instead of the one of its place. Before it is activated.
  void take_together(NodeIndex node, std::span<const std::uint32_t> lanes);

  // Marks a node, and what it needs, as to be computed. known(node) is asked once for each of
  // them; true: its outputs are there already, and nothing is computed for it.
  template <class Known>
  void activate(NodeIndex root, Known&& known);

  // A lazy input is wanted after all: its reader, which is running, waits for it from now on.
  // False: its value is there.
  template <class Known>
  bool want(NodeIndex reader, const Source& source, Known&& known);

  // One reader more, which never ends: the outputs are kept.
  void hold(NodeIndex node) { ++nodes_[node].readers; }

  // The next node to start; it takes its lanes. kNone: no node is ready whose lanes are free.
  NodeIndex take();
  bool can_take() const { return head() != kNone; }
  bool is_idle() const { return ready_ == 0; }  // no node is ready
  // Gives the node's lanes back.
  void leave(NodeIndex node);

  // The outputs of a node are there: those that waited for it may be ready now.
  // unread(producer) is called for nodes (this one, or one that it read) whose outputs nobody will
  // read any more.
  template <class Unread>
  void finish(NodeIndex node, Unread&& unread);

  // All of the node's producers are done, so that it is ready (again).
  bool is_waiting(NodeIndex node) const { return nodes_[node].waiting > 0; }
  void make_ready(NodeIndex node);
  std::uint32_t rank(NodeIndex node) const { return nodes_[node].rank; }

 private:
  static constexpr std::uint32_t kEnd = UINT32_MAX;
  struct State {
    std::uint32_t rank = 0;
    std::uint32_t waiting = 0;        // producers that are not done
    std::uint32_t readers = 0;        // links that may still read the outputs
    // In waits_: the readers to be told when it is done, in the order in which they came to wait.
    std::uint32_t first_wait = kEnd, last_wait = kEnd;
    std::uint32_t lane_begin = 0;     // in lane_ids_
    std::uint16_t lane_count = 1;
    bool active = false, done = false;
    bool counted = false;  // its links are among the readers of what it reads
  };
  struct Wait {
    NodeIndex reader;
    std::uint32_t next;
  };
  // Ready nodes by their ranks, the lowest first. Most become ready in that order: those stand in
  // a line, the others in a heap.
  class Ready {
   public:
    bool empty() const { return next_ == line_.size() && heap_.empty(); }
    std::uint32_t front() const { return is_line() ? line_[next_] : heap_.front(); }
    void push(std::uint32_t rank);
    void pop();

   private:
    bool is_line() const {
      return next_ < line_.size() && (heap_.empty() || line_[next_] < heap_.front());
    }
    std::vector<std::uint32_t> line_, heap_;
    std::size_t next_ = 0;
  };
  struct Lane {
    Ready ready;
    bool busy = false;
  };

  std::span<const std::uint32_t> lanes_of(const State& s) const {
    return {lane_ids_.data() + s.lane_begin, s.lane_count};
  }
  // visit(source, whether it is read only when the node asks for it), for every link into a node.
  template <class Visit>
  void for_each_link(NodeIndex n, Visit&& visit) const {
    const Node& node = graph_.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
      if (const auto* link = std::get_if<Source>(&node.inputs[i]))
        visit(*link, (node.type->input(i).flags & HEDDLE_PORT_LAZY) != 0);
    for (const auto& [name, binding] : node.extra)
      if (const auto* link = std::get_if<Source>(&binding)) visit(*link, false);
  }
  void set_done(State& state);
  void reserve(NodeIndex root);
  NodeIndex head() const;
  void wait_for(NodeIndex reader, NodeIndex producer);

  const Graph& graph_;
  const std::vector<NodeIndex>& order_;  // the plan's, or the graph's
  std::vector<State> nodes_;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> lane_ids_;  // every lane by itself, then the sets that nodes take
  std::vector<Wait> waits_;
  std::vector<NodeIndex> stack_;  // of activate(), which may not recurse: chains are long
  std::size_t ready_ = 0;
};

// Here, because each runs for every node, and a call costs as much as most of them do.

inline void Schedule::Ready::push(std::uint32_t rank) {
  if (next_ == line_.size()) {
    line_.clear();
    next_ = 0;
  }
  if (line_.empty() || rank > line_.back()) return line_.push_back(rank);
  heap_.push_back(rank);
  std::ranges::push_heap(heap_, std::greater<>());
}

inline void Schedule::Ready::pop() {
  if (is_line()) {
    ++next_;
    return;
  }
  std::ranges::pop_heap(heap_, std::greater<>());
  heap_.pop_back();
}

// The lowest rank of those heads of lanes that can start: free lanes, and first in all of them.
inline NodeIndex Schedule::head() const {
  if (ready_ == 0) return kNone;
  std::uint32_t best = kEnd;
  for (const Lane& lane : lanes_) {
    if (lane.busy || lane.ready.empty()) continue;
    const std::uint32_t rank = lane.ready.front();
    if (rank >= best) continue;
    const State& state = nodes_[order_[rank]];
    const bool can_start =
        state.lane_count == 1 || std::ranges::all_of(lanes_of(state), [&](std::uint32_t id) {
          return !lanes_[id].busy && lanes_[id].ready.front() == rank;
        });
    if (can_start) best = rank;
  }
  return best == kEnd ? kNone : order_[best];
}

inline NodeIndex Schedule::take() {
  const NodeIndex n = head();
  if (n == kNone) return n;
  --ready_;
  for (const std::uint32_t id : lanes_of(nodes_[n])) {
    Lane& lane = lanes_[id];
    lane.ready.pop();
    lane.busy = true;
  }
  return n;
}

inline void Schedule::leave(NodeIndex n) {
  for (const std::uint32_t id : lanes_of(nodes_[n])) lanes_[id].busy = false;
}

inline void Schedule::make_ready(NodeIndex n) {
  ++ready_;
  for (const std::uint32_t id : lanes_of(nodes_[n])) lanes_[id].ready.push(nodes_[n].rank);
}

inline void Schedule::set_done(State& state) {
  state.done = true;
  for (std::uint32_t at = state.first_wait; at != kEnd; at = waits_[at].next)
    if (--nodes_[waits_[at].reader].waiting == 0) make_ready(waits_[at].reader);
  state.first_wait = kEnd;
}

inline void Schedule::wait_for(NodeIndex reader, NodeIndex producer) {
  ++nodes_[reader].waiting;
  const auto at = static_cast<std::uint32_t>(waits_.size());
  waits_.push_back({reader, kEnd});
  State& made_by = nodes_[producer];
  (made_by.first_wait == kEnd ? made_by.first_wait : waits_[made_by.last_wait].next) = at;
  made_by.last_wait = at;
}

template <class Known>
void Schedule::activate(NodeIndex root, Known&& known) {
  stack_.push_back(root);
  while (!stack_.empty()) {
    const NodeIndex n = stack_.back();
    stack_.pop_back();
    State& state = nodes_[n];
    if (state.active) continue;
    state.active = true;
    if (known(n)) {
      set_done(state);
      continue;
    }
    for_each_link(n, [&](const Source& source, bool lazy) {
      State& producer = nodes_[source.node];
      if (!state.counted) ++producer.readers;
      if (lazy) return reserve(source.node);
      if (producer.done) return;
      wait_for(n, source.node);
      if (!producer.active) stack_.push_back(source.node);
    });
    state.counted = true;
    if (state.waiting == 0) make_ready(n);
  }
}

template <class Known>
bool Schedule::want(NodeIndex reader, const Source& source, Known&& known) {
  activate(source.node, known);
  if (nodes_[source.node].done) return false;
  wait_for(reader, source.node);
  return true;
}

template <class Unread>
void Schedule::finish(NodeIndex n, Unread&& unread) {
  State& state = nodes_[n];
  set_done(state);
  if (state.readers == 0) unread(n);
  for_each_link(n, [&](const Source& source, bool) {
    State& producer = nodes_[source.node];
    if (--producer.readers == 0 && producer.done) unread(source.node);
  });
}

}  // namespace heddle::core
