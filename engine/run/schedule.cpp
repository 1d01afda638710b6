#include "engine/run/schedule.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace heddle::core {

void Schedule::Ready::push(std::uint32_t rank) {
  if (next_ == line_.size()) {
    line_.clear();
    next_ = 0;
  }
  if (line_.empty() || rank > line_.back()) return line_.push_back(rank);
  heap_.push_back(rank);
  std::ranges::push_heap(heap_, std::greater<>());
}

void Schedule::Ready::pop() {
  if (is_line()) {
    ++next_;
    return;
  }
  std::ranges::pop_heap(heap_, std::greater<>());
  heap_.pop_back();
}

Schedule::Schedule(const Graph& graph, const Plan& plan, std::uint32_t device_count)
    : graph_(graph),
      order_(plan.order.empty() ? graph.order : plan.order),
      nodes_(graph.nodes.size()),
      lanes_(device_count + 1),
      lane_ids_(device_count + 1) {
  std::iota(lane_ids_.begin(), lane_ids_.end(), 0u);
  for (std::uint32_t rank = 0; rank < order_.size(); ++rank) nodes_[order_[rank]].rank = rank;
  for (NodeIndex n = 0; n < nodes_.size(); ++n) {
    const Assignment& at = plan.places[n];
    nodes_[n].lane_begin = at.on_host ? device_count : at.device;
    if (!at.on_host && at.devices.size() > 1) take_together(n, at.devices);
  }
}

void Schedule::take_together(NodeIndex node, std::span<const std::uint32_t> lanes) {
  nodes_[node].lane_begin = static_cast<std::uint32_t>(lane_ids_.size());
  nodes_[node].lane_count = static_cast<std::uint16_t>(lanes.size());
  lane_ids_.insert(lane_ids_.end(), lanes.begin(), lanes.end());
}

// The lowest rank of those heads of lanes that can start: free lanes, and first in all of them.
NodeIndex Schedule::head() const {
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

NodeIndex Schedule::take() {
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

void Schedule::leave(NodeIndex n) {
  for (const std::uint32_t id : lanes_of(nodes_[n])) lanes_[id].busy = false;
}

void Schedule::make_ready(NodeIndex n) {
  ++ready_;
  for (const std::uint32_t id : lanes_of(nodes_[n])) lanes_[id].ready.push(nodes_[n].rank);
}

void Schedule::set_done(State& state) {
  state.done = true;
  for (std::uint32_t at = state.first_wait; at != kEnd; at = waits_[at].next)
    if (--nodes_[waits_[at].reader].waiting == 0) make_ready(waits_[at].reader);
  state.first_wait = kEnd;
}

// A node that may be asked for later reads its producers then: they keep their outputs till the
// run's end, as nobody can say when it will not be asked for any more.
void Schedule::reserve(NodeIndex root) {
  std::vector<NodeIndex> stack{root};
  while (!stack.empty()) {
    const NodeIndex n = stack.back();
    stack.pop_back();
    if (nodes_[n].counted || nodes_[n].active) continue;
    nodes_[n].counted = true;
    for_each_link(n, [&](const Source& source, bool) {
      ++nodes_[source.node].readers;
      stack.push_back(source.node);
    });
  }
}

void Schedule::wait_for(NodeIndex reader, NodeIndex producer) {
  ++nodes_[reader].waiting;
  waits_.push_back({reader, nodes_[producer].first_wait});
  nodes_[producer].first_wait = static_cast<std::uint32_t>(waits_.size() - 1);
}

}  // namespace heddle::core
