// Runs that go on later: the states that calls give between two steps, and what finished nodes have
// made that others still want. A run that is told to release what it holds leaves with them; one
// with checkpoints writes them down as it goes.
#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/memory/host_tensor.h"
#include "engine/run/execution.h"

namespace heddle::engine {

Value Execution::state_of(NodeIndex n, std::size_t element) {
  const Node& node = run_.node(n);
  const SavedContent::State state = request_.saved->state_of({node.id, element});
  if (!state.value || state.has_ended) return {};
  if (state.key != Hash128() && state.key != key_of(n)) {
    observer_.warning(&node,
                      "begins anew: what it is made of has changed since the run was stopped");
    return {};
  }
  const std::lock_guard saving(saving_);
  stated_.insert(n);
  return state.value;
}

// False: it may be made of something else when it is made once more. Values that were given for
// this run alone have no key, and stay.
bool Execution::is_repeatable(NodeIndex n) const {
  if (key_of(n) != Hash128()) return true;
  const NodeType& type = *run_.node(n).type;
  if (type.has(HEDDLE_NODE_IMPURE) || type.desc().fingerprint != nullptr) return false;
  bool is = true;
  for_each_binding(run_.node(n), [&](const Binding& binding) {
    if (const auto* link = std::get_if<Source>(&binding)) is = is && is_repeatable(link->node);
  });
  return is;
}

bool Execution::wants_state(NodeIndex n) {
  const bool is_wanted = control_.releases() || leaves_ ||
                         (request_.checkpoints != nullptr && request_.checkpoints->is_due());
  return is_wanted && is_repeatable(n);
}

bool Execution::save(NodeIndex n, std::size_t element, Value state) {
  request_.saved->keep({run_.node(n).id, element}, {key_of(n), std::move(state)});
  {
    const std::lock_guard saving(saving_);
    stated_.insert(n);
  }
  if (control_.releases() || leaves_) return false;
  write_checkpoint();
  return true;
}

// A call of a list's element that had ended before the run was stopped.
bool Execution::take_element(NodeIndex n, std::size_t element, NodeCall& call) {
  if (request_.saved == nullptr || request_.saved->is_empty()) return false;
  const Node& node = run_.node(n);
  const SavedContent::State state = request_.saved->state_of({node.id, element});
  if (!state.has_ended || (state.key != Hash128() && state.key != key_of(n))) return false;
  const auto* outputs = std::get_if<List>(&state.value->content);
  if (outputs == nullptr || outputs->items.size() != node.type->output_count()) return false;
  for (std::uint32_t o = 0; o < outputs->items.size(); ++o) call.set_output(o, outputs->items[o]);
  const std::lock_guard saving(saving_);
  stated_.insert(n);
  return true;
}

// What the calls before this one have made: they need not be made again.
void Execution::keep_elements(const Running& running, std::size_t before) {
  const NodeIndex n = running.node;
  if (request_.saved == nullptr || !is_repeatable(n)) return;
  for (std::size_t e = 0; e < before; ++e) {
    NodeCall& call = *running.elements[e];
    const CallId id{run_.node(n).id, e};
    if (call.is_blocked() || call.deferred() || call.has_made_for_user() ||
        request_.saved->state_of(id).has_ended)
      continue;
    List kept;
    for (const Value& output : call.outputs())
      if (output && may_be_kept(*output)) kept.items.push_back(host_copy(output));
    if (kept.items.size() != call.outputs().size() ||
        std::ranges::any_of(kept.items, [](const Value& value) { return !value; }))
      continue;
    request_.saved->keep(id, {key_of(n), make_value(std::move(kept)), true});
    const std::lock_guard saving(saving_);
    stated_.insert(n);
  }
}

// Called without the lock, returns with it. Whoever waits for the node looks for another who
// computes it.
void Execution::suspend(Running& running, Lock& lock) {
  if (running.has_flight) drop_flight(running.node);
  leaves_ = true;
  enter(lock);
  take_back(running.node);
  if (is_shared_) changed_.notify_all();
}

// A sink is not done twice, and what a model has made would take long. With the lock, which it
// gives up in between.
void Execution::note_ended(NodeIndex n, Lock& lock) {
  if (!run_.node(n).type->has(HEDDLE_NODE_SINK) && !called_models_.contains(n)) return;
  leave(lock);
  write_checkpoint();
  enter(lock);
}

void Execution::write_checkpoint() {
  const std::lock_guard saving(saving_);
  save_outputs();
  request_.checkpoints->write(*request_.saved, observer_);
}

// Nodes that have called a model, or that are made of what these have made. Of what was found in
// the cache only the plan may tell. With the lock.
std::vector<bool> Execution::worth_keeping() const {
  std::vector<bool> is_worth(run_.size());
  const auto mark = [&](NodeIndex n) {
    bool is = !run_.place(n).calls.empty() || called_models_.contains(n);
    for_each_binding(run_.node(n), [&](const Binding& binding) {
      if (const auto* link = std::get_if<Source>(&binding)) is = is || is_worth[link->node];
    });
    is_worth[n] = is;
  };
  for (const NodeIndex n : graph_.order) mark(n);
  return is_worth;
}

// With saving_.
void Execution::save_outputs() {
  struct Wanted {
    Source source;
    NodeIndex reader;
    std::uint32_t flags;
    Value value;
  };
  std::vector<Wanted> wanted;
  SavedRun::Ended ended;
  {
    Lock lock(mutex_, std::defer_lock);
    enter(lock);
    const std::vector<bool> is_worth = worth_keeping();
    for (const NodeIndex n : graph_.order) {
      if (schedule_.is_done(n) && run_.node(n).type->has(HEDDLE_NODE_SINK))
        ended.sinks.insert(run_.node(n).id);
      if (!schedule_.is_unfinished(n)) continue;
      for_each_link(run_.node(n), [&](const Source& source, std::uint32_t flags) {
        if (source.node < run_.planned_count() && is_worth[source.node] &&
            schedule_.is_done(source.node))
          wanted.push_back({source, n, flags, output(source)});
      });
    }
    for (const Source& source : request_.fetch)
      if (schedule_.is_done(source.node))
        wanted.push_back({source, source.node, 0, output(source)});
    for (const NodeIndex n : stated_)
      if (schedule_.is_done(n)) ended.stated.insert(run_.node(n).id);
  }
  std::map<std::string, SavedContent::Outputs> outputs;
  for (Wanted& each : wanted) {
    const auto [n, port] = each.source;
    if (!is_repeatable(n)) continue;
    // A copy goes with its reader, who then wants it no more.
    if (!each.value && each.reader != n)
      each.value = transfers_.sent_copy(each.source, each.reader, each.flags);
    if (!each.value || !may_be_kept(*each.value)) continue;
    SavedContent::Outputs& kept = outputs[run_.node(n).id];
    kept.key = key_of(n);
    kept.values.resize(run_.node(n).type->output_count());
    if (!kept.values[port]) kept.values[port] = kept_output(each.source, each.value);
  }
  request_.saved->settle(std::move(outputs), ended);
}

// As it was kept before, where it was.
Value Execution::kept_output(const Source& source, const Value& value) const {
  const std::vector<Value> before = request_.saved->outputs_of(run_.node(source.node).id);
  if (source.port < before.size() && before[source.port]) return before[source.port];
  return host_copy(value);
}

// Empty: there is no memory for it, and it is made once more.
Value Execution::host_copy(const Value& value) const {
  try {
    return map_tensors(value, [this](const Tensor& tensor) {
      const heddle_tensor_info& info = tensor->info;
      const Tensor copy = make_host_tensor(make_info(info.dtype, std::span(info.shape, info.rank)),
                                           environment_.host_ledger);
      if (const std::uint64_t bytes = dense_bytes(info); bytes > 0)
        environment_.devices.front().state->read(tensor, copy->data(), bytes);
      return copy;
    });
  } catch (const Error& error) {
    log(Level::debug, cat("what a node has made is not kept: ", error.full()));
    return {};
  }
}

}  // namespace heddle::engine
