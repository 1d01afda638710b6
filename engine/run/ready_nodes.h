// Which nodes of a run are computed, what each of them still waits for, which one starts next, and
// who will still read what. Bookkeeping alone: nothing is executed here. One thread at a time.
//
// A queue runs one node at a time: there is one for each device and one for the host. Inside of a
// queue nodes start by rank, their position in the order of the plan, or else of the graph. A node
// that takes several queues waits at the head of each until all are free; meanwhile nothing
// overtakes it there, so it is never starved, and the node of the lowest rank can always start.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/place/value_flow.h"
#include "engine/run/run_graph.h"

namespace heddle::engine {

class Schedule {
 public:
  static constexpr NodeIndex kNone = kGraphInputs;

  // It has to outlive this object.
  Schedule(const RunGraph& run, std::uint32_t device_count);

  // A node more, which has been added to the run. It starts after those that were there before.
  void add(NodeIndex node);

  // The node takes these queues together, instead of the one of its place. Before it is activated.
  void take_together(NodeIndex node, std::span<const std::uint32_t> queues);

  // Marks a node, and what it needs, as to be computed. known(node) is asked once for each of
  // them; true: its outputs are there already, and nothing is computed for it.
  template <class Known>
  void activate(NodeIndex root, Known&& known);

  // A lazy input is wanted after all: its reader, which is running, waits for it from now on.
  // False: its value is there.
  template <class Known>
  bool want(NodeIndex reader, const Source& source, Known&& known);

  // One reader more, which is no link: the value is kept, for good or until release().
  void hold(const Source& source) { ++readers_of(source); }
  template <class Unread>
  void release(const Source& source, Unread&& unread) {
    if (--readers_of(source) == 0 && nodes_[source.node].done) unread(source);
  }

  bool is_done(NodeIndex node) const { return nodes_[node].done; }
  // Nodes that are to be computed and are not done. When nothing is ready and nothing runs, these
  // wait for one another.
  std::size_t unfinished() const { return unfinished_; }
  bool is_unfinished(NodeIndex node) const { return nodes_[node].active && !nodes_[node].done; }

  // Whether the node is computed, or may be when another asks for it: its links count as readers.
  // The same from the first finish() on.
  bool reads(NodeIndex node) const { return nodes_[node].counted; }

  // The next node to start; it takes its queues. kNone: no node is ready whose queues are free.
  NodeIndex take();
  bool can_take() const { return head() != kNone; }
  bool is_idle() const { return ready_ == 0; }  // no node is ready
  // Gives the node's queues back.
  void leave(NodeIndex node);

  // So many links to an output of a node that is about to finish read a copy, and never the value.
  void give_copies(const Source& source, std::uint32_t links) { readers_of(source) -= links; }

  // The outputs of a node are there: those that waited for it may be ready now.
  // reads_copy(source, flags of the port): give_copies() has counted this link of the node.
  // unread(source) is called for values (of this node, or that it read) which nobody will read any
  // more.
  template <class ReadsCopy, class Unread>
  void finish(NodeIndex node, ReadsCopy&& reads_copy, Unread&& unread) {
    finish_outputs(node, unread);
    finish_inputs(node, reads_copy, unread);
  }
  template <class Unread>
  void finish(NodeIndex node, Unread&& unread) {
    finish(
        node, [](const Source&, std::uint32_t) { return false; }, unread);
  }
  // Some outputs of a node that is not done may be read: readers for which reads_parts(reader)
  // holds wait for it no more, though some may for others. Gives how many.
  template <class ReadsParts>
  std::uint32_t begin_outputs(NodeIndex node, ReadsParts&& reads_parts);
  // The two halves of it, for a node whose inputs are read long before its outputs are there.
  template <class Unread>
  void finish_outputs(NodeIndex node, Unread&& unread);
  template <class ReadsCopy, class Unread>
  void finish_inputs(NodeIndex node, ReadsCopy&& reads_copy, Unread&& unread);
  // The node, which is running, waits for another; false: that is done.
  template <class Known>
  bool wait_until(NodeIndex node, NodeIndex producer, Known&& known) {
    activate(producer, known);
    if (nodes_[producer].done) return false;
    wait_for(node, producer);
    return true;
  }

  // All of the node's producers are done, so that it is ready (again).
  bool is_waiting(NodeIndex node) const { return nodes_[node].waiting > 0; }
  void make_ready(NodeIndex node);
  std::uint32_t rank(NodeIndex node) const { return nodes_[node].rank; }

 private:
  static constexpr std::uint32_t kEnd = UINT32_MAX;
  struct State {
    std::uint32_t rank = 0;
    std::uint32_t waiting = 0;  // producers that are not done
    // In waits_: the readers to be told when it is done, in the order in which they came to wait.
    std::uint32_t first_wait = kEnd, last_wait = kEnd;
    std::uint32_t queue_begin = 0;  // in queue_ids_
    std::uint16_t queue_count = 1;
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
    std::uint32_t front() const { return front_; }  // kEnd: there is none
    void push(std::uint32_t rank);
    void pop();

   private:
    std::uint32_t front_ = kEnd;
    std::vector<std::uint32_t> line_, heap_;
    std::size_t next_ = 0;
  };
  struct Queue {
    Ready ready;
    bool busy = false;
  };

  std::span<const std::uint32_t> queues_of(const State& s) const {
    return {queue_ids_.data() + s.queue_begin, s.queue_count};
  }
  std::uint32_t& readers_of(const Source& source) { return readers_[run_.output_index(source)]; }
  NodeIndex node_at(std::uint32_t rank) const {
    return rank < order_.size() ? order_[rank] : added_[rank - order_.size()];
  }
  void set_place(NodeIndex node, State& state);
  void set_done(State& state);
  void reserve(NodeIndex root);
  NodeIndex head() const;
  void wait_for(NodeIndex reader, NodeIndex producer);

  const RunGraph& run_;
  const std::vector<NodeIndex>& order_;  // the plan's, or the graph's
  std::vector<NodeIndex> added_;         // behind them
  const std::uint32_t device_count_;
  GrowingVector<State> nodes_;
  std::vector<std::uint32_t> readers_;  // by output of the run: links that may still read it
  std::vector<Queue> queues_;
  std::vector<std::uint32_t> queue_ids_;  // every queue by itself, then the sets that nodes take
  std::vector<Wait> waits_;
  std::vector<NodeIndex> stack_;  // of activate(), which may not recurse: chains are long
  std::size_t ready_ = 0, unfinished_ = 0;
};

// Here, because each runs for every node, and a call costs as much as most of them do.

inline void Schedule::Ready::push(std::uint32_t rank) {
  front_ = std::min(front_, rank);
  if (next_ == line_.size()) {
    line_.clear();
    next_ = 0;
  }
  if (line_.empty() || rank > line_.back()) return line_.push_back(rank);
  heap_.push_back(rank);
  std::ranges::push_heap(heap_, std::greater<>());
}

inline void Schedule::Ready::pop() {
  if (next_ < line_.size() && line_[next_] == front_) {
    ++next_;
  } else {
    std::ranges::pop_heap(heap_, std::greater<>());
    heap_.pop_back();
  }
  front_ = next_ < line_.size() ? line_[next_] : kEnd;
  if (!heap_.empty()) front_ = std::min(front_, heap_.front());
}

// The lowest rank of those heads of queues that can start: free queues, and first in all of them.
inline NodeIndex Schedule::head() const {
  if (ready_ == 0) return kNone;
  std::uint32_t best = kEnd;
  NodeIndex found = kNone;
  for (const Queue& queue : queues_) {
    const std::uint32_t rank = queue.ready.front();
    if (rank >= best || queue.busy) continue;
    const NodeIndex n = node_at(rank);
    const State& state = nodes_[n];
    const bool can_start =
        state.queue_count == 1 || std::ranges::all_of(queues_of(state), [&](std::uint32_t id) {
          return !queues_[id].busy && queues_[id].ready.front() == rank;
        });
    if (!can_start) continue;
    best = rank;
    found = n;
  }
  return found;
}

inline NodeIndex Schedule::take() {
  const NodeIndex n = head();
  if (n == kNone) return n;
  --ready_;
  for (const std::uint32_t id : queues_of(nodes_[n])) {
    Queue& queue = queues_[id];
    queue.ready.pop();
    queue.busy = true;
  }
  return n;
}

inline void Schedule::leave(NodeIndex n) {
  for (const std::uint32_t id : queues_of(nodes_[n])) queues_[id].busy = false;
}

inline void Schedule::make_ready(NodeIndex n) {
  ++ready_;
  const State& state = nodes_[n];
  for (const std::uint32_t id : queues_of(state)) queues_[id].ready.push(state.rank);
}

inline void Schedule::set_done(State& state) {
  state.done = true;
  --unfinished_;
  for (std::uint32_t at = state.first_wait; at != kEnd; at = waits_[at].next) {
    const NodeIndex reader = waits_[at].reader;
    if (--nodes_[reader].waiting == 0) make_ready(reader);
  }
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

template <class ReadsParts>
std::uint32_t Schedule::begin_outputs(NodeIndex node, ReadsParts&& reads_parts) {
  State& state = nodes_[node];
  std::uint32_t begun = 0;
  std::uint32_t* link = &state.first_wait;
  state.last_wait = kEnd;
  for (std::uint32_t at = *link; at != kEnd; at = *link) {
    const NodeIndex reader = waits_[at].reader;
    if (!reads_parts(reader)) {
      state.last_wait = at;
      link = &waits_[at].next;
      continue;
    }
    *link = waits_[at].next;
    ++begun;
    if (--nodes_[reader].waiting == 0) make_ready(reader);
  }
  return begun;
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
    ++unfinished_;
    if (known(n)) {
      set_done(state);
      continue;
    }
    for_each_link(run_.node(n), [&](const Source& source, std::uint32_t flags) {
      State& producer = nodes_[source.node];
      if (!state.counted) ++readers_of(source);
      if ((flags & HEDDLE_PORT_LAZY) != 0) return reserve(source.node);
      if (producer.done) return;
      wait_for(n, source.node);
      if (!producer.active) stack_.push_back(source.node);
    });
    if (!state.counted) state.counted = true;  // not written again: reads() may be asked meanwhile
    if (state.waiting == 0) make_ready(n);
  }
}

template <class Known>
bool Schedule::want(NodeIndex reader, const Source& source, Known&& known) {
  return wait_until(reader, source.node, known);
}

template <class Unread>
void Schedule::finish_outputs(NodeIndex n, Unread&& unread) {
  set_done(nodes_[n]);
  const std::uint32_t count = run_.node(n).type->output_count();
  const std::size_t first = run_.output_index({n, 0});
  for (std::uint32_t o = 0; o < count; ++o)
    if (readers_[first + o] == 0) unread(Source{n, o});
}

template <class ReadsCopy, class Unread>
void Schedule::finish_inputs(NodeIndex n, ReadsCopy&& reads_copy, Unread&& unread) {
  for_each_link(run_.node(n), [&](const Source& source, std::uint32_t flags) {
    if (!reads_copy(source, flags) && --readers_of(source) == 0 && nodes_[source.node].done)
      unread(source);
  });
}

}  // namespace heddle::engine
