#include "engine/run/ready_nodes.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace heddle::engine {

inline void Schedule::set_place(NodeIndex n, State& state) {
  const Assignment& at = run_.place(n);
  state.queue_begin = at.on_host ? device_count_ : at.device;
  if (!at.on_host && at.devices.size() > 1) take_together(n, at.devices);
}

Schedule::Schedule(const RunGraph& run, std::uint32_t device_count)
    : run_(run),
      order_(run.order()),
      device_count_(device_count),
      nodes_(run.size()),
      readers_(run.output_count()),
      queues_(device_count + 1),
      queue_ids_(device_count + 1) {
  std::iota(queue_ids_.begin(), queue_ids_.end(), 0u);
  for (std::uint32_t rank = 0; rank < order_.size(); ++rank) nodes_[order_[rank]].rank = rank;
  for (NodeIndex n = 0; n < run.size(); ++n) set_place(n, nodes_[n]);
}

void Schedule::add(NodeIndex node) {
  State& state = nodes_.add_empty();
  state.rank = static_cast<std::uint32_t>(order_.size() + added_.size());
  added_.push_back(node);
  readers_.resize(run_.output_count());
  set_place(node, state);
}

void Schedule::take_together(NodeIndex node, std::span<const std::uint32_t> queues) {
  nodes_[node].queue_begin = static_cast<std::uint32_t>(queue_ids_.size());
  nodes_[node].queue_count = static_cast<std::uint16_t>(queues.size());
  queue_ids_.insert(queue_ids_.end(), queues.begin(), queues.end());
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
    for_each_link(run_.node(n), [&](const Source& source, std::uint32_t) {
      ++readers_of(source);
      stack.push_back(source.node);
    });
  }
}

}  // namespace heddle::engine
