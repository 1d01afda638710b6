// What a run takes from the cache and from disk, what it puts there under which keys, and what has
// to go again.
#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/run/execution.h"
#include "engine/run/keys.h"
#include "heddle/abi/front_end.h"

namespace heddle::engine {

// What came of a file that was changed meanwhile, or of which pages were lost, is not what its key
// says. Other runs that had begun before may have taken it from the cache; they find out, too.
void Execution::check_files() {
  try {
    forget_changed();
  } catch (const std::bad_alloc&) {
    environment_.cache.clear();  // better nothing than what is wrong
  }
}

void Execution::forget_changed() {
  const bool is_damaged = models_.is_damaged();
  std::vector<bool> is_changed(run_.size(), is_damaged);
  const UsedFile* first = nullptr;
  NodeIndex reader = 0;
  for (const auto& [n, files] : key_files_) {
    const UsedFile* const changed = find_changed(files);
    if (changed == nullptr) continue;
    is_changed[n] = true;
    if (first == nullptr) first = changed, reader = n;
  }
  if (first == nullptr && !is_damaged) return;
  mark_made_of(is_changed);
  std::vector<Hash128> keys;
  for (NodeIndex n = 0; n < run_.size(); ++n)
    if (is_changed[n]) keys.push_back(key_of(n));
  std::ranges::sort(keys);
  environment_.cache.drop_if([&](const Hash128& key, std::span<const Value>) {
    return std::ranges::binary_search(keys, key);
  });
  std::erase_if(result_.to_cache_on_disk, [&](const auto& made) { return is_changed[made.first]; });
  if (first != nullptr && failure_ == nullptr)
    observer_.warning(
        &run_.node(reader),
        cat(first->path.native(),
            " was changed while the run used it, so nothing that came of it is kept, "
            "and it may be wrong. Run it again, and replace files by renaming, not by "
            "writing over them."));
}

// Marks what was made of what is marked. What came while the run was under way may have gone into
// anything that asked for nodes, so all of it counts as one.
void Execution::mark_made_of(std::vector<bool>& is_marked) const {
  const auto mark = [&](NodeIndex n) {
    for_each_binding(run_.node(n), [&](const Binding& binding) {
      if (const auto* link = std::get_if<Source>(&binding))
        is_marked[n] = is_marked[n] || is_marked[link->node];
    });
  };
  for (const NodeIndex n : graph_.order) mark(n);
  bool any_added = false;
  for (NodeIndex n = run_.planned_count(); n < run_.size(); ++n) {
    mark(n);
    any_added = any_added || is_marked[n];
  }
  if (!any_added) return;
  for (NodeIndex n = run_.planned_count(); n < run_.size(); ++n) is_marked[n] = true;
  for (const NodeIndex n : graph_.order)
    is_marked[n] = is_marked[n] || run_.node(n).type->has(HEDDLE_NODE_EXPANDS);
  for (const NodeIndex n : graph_.order) mark(n);
}

// Those whose work was given up, and all that was made of it.
std::vector<NodeIndex> Execution::lost_nodes() const {
  std::vector<NodeIndex> lost = control_.work()->lost();
  if (lost.empty()) return lost;
  std::vector<bool> is_lost(run_.size());
  for (const NodeIndex n : lost) is_lost[n] = true;
  mark_made_of(is_lost);
  lost.clear();
  for (NodeIndex n = 0; n < run_.size(); ++n)
    if (is_lost[n]) lost.push_back(n);
  return lost;
}

std::vector<NodeIndex> Execution::all_nodes() const {
  std::vector<NodeIndex> all = graph_.order;
  for (NodeIndex n = run_.planned_count(); n < run_.size(); ++n) all.push_back(n);
  return all;
}

// They went into the cache when they had been enqueued; whether they were ever made, nobody knows.
void Execution::forget_outputs(const std::vector<NodeIndex>& of) {
  if (of.empty()) return;
  // A node that failed when it had been added has no timing, so it is by those that were found.
  std::vector<bool> was_found(run_.size());
  for (const NodeTiming& timing : result_.timings)
    if (timing.cached) was_found[timing.node] = true;
  std::vector<Hash128> made;
  for (const NodeIndex n : of)
    if (!was_found[n]) made.push_back(key_of(n));
  std::ranges::sort(made);
  environment_.cache.drop_if([&](const Hash128& key, std::span<const Value>) {
    return std::ranges::binary_search(made, key);
  });
}

// What earlier runs have made of the same.
void Execution::forget_kept(std::vector<NodeIndex> of) {
  std::vector<Hash128> keys;
  for (const NodeIndex n : of) keys.push_back(key_of(n));
  std::ranges::sort(keys);
  environment_.cache.drop_if([&](const Hash128& key, std::span<const Value>) {
    return std::ranges::binary_search(keys, key);
  });
}

// New nodes may read any node of the workflow, also one that all others have done with: then it is
// found in the cache, or made once more. What can be neither stays.
void Execution::hold_uncacheable() {
  if (!graph_.may_grow) return;
  for (const NodeIndex n : graph_.order)
    for (std::uint32_t o = 0; o < graph_.nodes[n].type->output_count(); ++o)
      if (keys_[n] == Hash128()) schedule_.hold({n, o});
}

void Execution::find_keys() {
  for (std::uint32_t d = 0; d < environment_.devices.size(); ++d) {
    const Device& device = environment_.devices[d].state->device();
    device_classes_.push_back(Hasher()
                                  .add(device.kind())
                                  .add(device.model())
                                  .add(device.compute())
                                  .add(use_.failed_before(d))
                                  .finish());
  }
  const auto known = [&](NodeIndex n) {
    const auto cached = request_.disk_cached.find(n);
    if (cached == request_.disk_cached.end()) return KnownKey();
    return KnownKey{cached->second.key, cached->second.is_key_of_outputs};
  };
  keys_ = output_keys(
      graph_, plan_.assignments, device_classes_,
      [&](NodeIndex n) {
        return fingerprint(graph_.nodes[n], plan_.assignments[n], key_files_[n]);
      },
      request_.disk_cached.empty() ? KnownKeys() : known);
}

// What was found on disk goes where the nodes would have made it.
void Execution::bring_disk_cached() {
  constexpr double kSeconds = 1e-3;  // about what it takes to read it once more
  for (const auto& [n, cached] : request_.disk_cached) {
    if (cached.values.empty()) continue;
    // Held from here on: its inputs are cut off, so it cannot be made again.
    const bool has_key = keys_[n] != Hash128();
    if (const auto reading = environment_.cache.read();
        const auto outputs =
            !has_key ? std::nullopt : reading.find(keys_[n], control_.work().get())) {
      brought_[n].assign(outputs->begin(), outputs->end());
      continue;
    }
    const auto bring = [&, n = n](const Tensor& tensor) {
      if (plan_.assignments[n].on_host) return tensor;
      use_.mark(plan_.assignments[n].device, graph_.nodes[n]);
      try {
        return device_of(n).state->upload(tensor->info, tensor->data());
      } catch (const Error& error) {
        if (error.code() != Code::out_of_memory) throw;
        return tensor;  // its readers bring what they read
      }
    };
    std::vector<Value>& values = brought_[n];
    for (const Value& value : cached.values) values.push_back(map_tensors(value, bring));
    if (has_key) environment_.cache.add(keys_[n], values, kSeconds);
  }
}

// Files that a node which is not there yet has looked at count for no node.
std::uint64_t Execution::fingerprint(const Node& node, const Assignment& place, UsedFiles& files) {
  try {
    return engine::fingerprint(call_shared_, node, environment_.devices[place.device], place,
                               files);
  } catch (const Error& error) {
    if (error.code() == Code::cancelled || error.code() == Code::out_of_memory) throw;
    // What lacks, the node itself tells when it runs.
    log(Level::warning, cat(name_of(node), ": nobody can say whether it has changed, so it ",
                            "runs again: ", error.full()));
    return HEDDLE_FINGERPRINT_NEVER;
  }
}

bool Execution::take_from_cache(NodeIndex n, const OutputCache::Reading& cache) {
  std::optional<std::span<const Value>> outputs;
  if (!brought_.empty() && brought_.contains(n)) [[unlikely]]
    outputs = brought_.at(n);
  else if (const Hash128& key = key_of(n); key != Hash128())
    outputs = cache.find(key, control_.work().get());
  if (!outputs) {
    if (n < run_.planned_count())
      transfers_.expect(n);
    else
      transfers_.expect_added(n, [&](const Source& sent) { schedule_.give_copies(sent, 1); });
    return false;
  }
  const std::uint32_t count = run_.node(n).type->output_count();
  const auto text_at = [&](std::size_t i) { return get_str(*(*outputs)[i]); };
  if (outputs->size() > count && !text_at(count).empty()) result_.ui.emplace(n, text_at(count));
  for (std::size_t i = count + 1; i < outputs->size(); ++i) blocked_[n].push_back(text_at(i));
  outputs = outputs->first(count);
  for (const Value& value : *outputs) use_.touch_holders(value);
  forecast_.made(n, *outputs);
  forecast_.done(n);
  read_ahead_.done(n);
  for (std::uint32_t o = 0; o < count; ++o) output({n, o}) = (*outputs)[o];
  result_.timings.push_back({n, 0, true});
  cached_.push_back(n);
  return true;
}

// A node that shows something on the way to the sinks does so again although nobody reads it in
// this run, because what reads it is in the cache.
void Execution::show_cached_on_the_way() {
  const auto is_passed_over = [&](NodeIndex n) {
    return run_.node(n).type->has(HEDDLE_NODE_INTERMEDIATE_OUTPUT) && !schedule_.is_done(n) &&
           key_of(n) != Hash128();
  };
  if (!run_.shows_on_the_way() || std::ranges::none_of(graph_.order, is_passed_over)) return;
  {
    const OutputCache::Reading cache = environment_.cache.read();
    for (const NodeIndex n : graph_.order) {
      if (!is_passed_over(n)) continue;
      const auto outputs = cache.find(key_of(n), control_.work().get());
      const std::uint32_t count = run_.node(n).type->output_count();
      if (!outputs || outputs->size() <= count || get_str(*(*outputs)[count]).empty()) continue;
      result_.ui.emplace(n, get_str(*(*outputs)[count]));
      result_.timings.push_back({n, 0, true});
      cached_.push_back(n);
    }
  }
  Lock lock(mutex_, std::defer_lock);
  enter(lock);
  report_cached(lock);
}

}  // namespace heddle::engine
