// What a run that fails leaves to its next try, and takes of the one before (finished_outputs.h).
#include <algorithm>

#include "engine/base/error.h"
#include "engine/run/execution.h"

namespace heddle::engine {

namespace {

bool may_have_tensors(const Value& value) {
  const heddle_kind kind = value ? kind_of(*value) : HEDDLE_KIND_NONE;
  return kind == HEDDLE_KIND_TENSOR || kind == HEDDLE_KIND_LIST || kind == HEDDLE_KIND_RECORD;
}

}  // namespace

// As if they had been found in the cache. What has another key than the plan gives it now, because
// it was made on another kind of device, is this run's alone, and so is what comes of it.
void Execution::bring_finished() {
  if (request_.finished == nullptr) return;
  FinishedOutputs finished = std::exchange(*request_.finished, {});
  for (const NodeIndex n : graph_.order) {
    const Node& node = graph_.nodes[n];
    const auto found = finished.nodes.find(node.id);
    if (found == finished.nodes.end()) continue;
    FinishedOutputs::Node& made = found->second;
    if (made.outputs.size() < node.type->output_count() || brought_.contains(n)) continue;
    if (made.is_uncached || made.key != keys_[n]) uncached_.add(n);
    brought_[n] = std::move(made.outputs);
  }
}

// By node: it was made of work that may have been lost, on a device or because it was given up.
std::vector<bool> Execution::untrusted_nodes(const std::vector<bool>& lost_devices) const {
  const auto is_lost = [&](std::uint32_t d) { return d < lost_devices.size() && lost_devices[d]; };
  std::vector<bool> is_marked(run_.size());
  for (const NodeIndex n : control_.work()->lost()) is_marked[n] = true;
  std::vector<bool> was_found(run_.size());
  for (const NodeTiming& timing : result_.timings)
    if (timing.cached) was_found[timing.node] = true;
  for (const NodeIndex n : all_nodes()) {
    const Assignment& place = run_.place(n);
    if (!place.on_host && !was_found[n])
      is_marked[n] =
          is_marked[n] || is_lost(place.device) || std::ranges::any_of(place.devices, is_lost);
  }
  mark_made_of(is_marked);
  return is_marked;
}

bool Execution::lies_on(const Value& value, const std::vector<bool>& devices) const {
  bool found = false;
  if (!may_have_tensors(value)) return false;
  for_each_tensor(*value, [&](const Tensor& tensor) {
    const auto* memory = dynamic_cast<const DeviceMemory*>(tensor->storage.get());
    for (std::uint32_t d = 0; memory != nullptr && d < devices.size(); ++d)
      found = found || (devices[d] && environment_.devices[d].state.get() == &memory->state());
  });
  return found;
}

// Nothing of the run is executing any more. A node counts as finished if all that may be read of it
// is still there: what has gone was read by nodes that have finished, too.
void Execution::leave_finished(const std::vector<bool>& lost_devices) {
  FinishedOutputs& left = *request_.finished;
  const std::vector<bool> is_untrusted = untrusted_nodes(lost_devices);
  std::vector<std::vector<NodeIndex>> readers(graph_.nodes.size());
  for (const NodeIndex n : graph_.order)
    for_each_link(graph_.nodes[n],
                  [&](const Source& source, std::uint32_t) { readers[source.node].push_back(n); });
  std::vector<bool> is_left(graph_.nodes.size());
  const auto left_of = [&](const Source& source) {
    const Value& value = output(source);
    return value ? value : released_.find(source);
  };
  for (auto at = graph_.order.rbegin(); at != graph_.order.rend(); ++at) {
    const NodeIndex n = *at;
    const Node& node = graph_.nodes[n];
    if (!schedule_.is_done(n) || is_untrusted[n] || node.type->has(HEDDLE_NODE_SINK)) continue;
    const auto reads = [&](NodeIndex reader, const Source& from) {
      bool is_read = false;
      for_each_link(graph_.nodes[reader], [&](const Source& source, std::uint32_t) {
        is_read = is_read || source == from;
      });
      return is_read;
    };
    const std::uint32_t count = node.type->output_count();
    bool is_whole = count > 0;
    for (std::uint32_t o = 0; o < count; ++o) {
      const Value value = left_of({n, o});
      const bool will_be_read =
          graph_.may_grow || std::ranges::any_of(readers[n], [&](NodeIndex reader) {
            return !is_left[reader] && reads(reader, {n, o});
          });
      if (value ? lies_on(value, lost_devices) : will_be_read) is_whole = false;
    }
    if (!is_whole) continue;
    is_left[n] = true;
    FinishedOutputs::Node& one = left.nodes[node.id];
    one.key = keys_[n];
    one.is_uncached = uncached_.has(n);
    for (std::uint32_t o = 0; o < count; ++o) one.outputs.push_back(left_of({n, o}));
    if (const auto ui = result_.ui.find(n); ui != result_.ui.end())
      one.outputs.push_back(make_value(ui->second));
  }
}

// A node that works in tiles and found no room for the smallest may have it elsewhere.
void Execution::note_crowded() {
  if (failed_node_ == Schedule::kNone || run_.place(failed_node_).on_host) return;
  if (!run_.node(failed_node_).type->has(HEDDLE_NODE_TILES)) return;
  try {
    std::rethrow_exception(failure_);
  } catch (const Error& error) {
    if (error.code() == Code::out_of_memory)
      request_.finished->crowded = run_.place(failed_node_).device;
  } catch (const std::exception&) {
  }
}

void Execution::leave_to_next_try(const std::vector<bool>& lost_devices) {
  if (request_.finished == nullptr) return;
  try {
    leave_finished(lost_devices);
    note_crowded();
  } catch (const std::exception&) {
    *request_.finished = {};  // it begins from the beginning
  }
}

}  // namespace heddle::engine
