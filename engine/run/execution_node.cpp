#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/run/execution.h"

namespace heddle::engine {

namespace {

void check_outputs(const Node& node, std::span<const Value> outputs) {
  for (std::uint32_t i = 0; i < outputs.size(); ++i) {
    const heddle_port& port = node.type->output(i);
    if (!outputs[i])
      throw Error(Code::internal, cat("the node did not set its output ", quote(port.name)));
    if ((port.flags & HEDDLE_PORT_LIST) != 0 && kind_of(*outputs[i]) != HEDDLE_KIND_LIST)
      throw Error(Code::internal, cat("the output ", quote(port.name),
                                      " is a list, the node set it to ", describe(*outputs[i])));
  }
}

bool holds_blocker(const Value& output) { return find_blocker(*output) != nullptr; }

}  // namespace

// Called without the lock, returns with it.
void Execution::run_node(NodeIndex n, bool has_flight, Worker& worker, Lock& lock) {
  if (worker.call == nullptr) worker.call = std::make_unique<NodeCall>(call_shared_);
  Running running{n, {}, std::move(worker.call), {}, 0, {}};
  running.has_flight = has_flight;
  guard_node(n, has_flight, lock, [&] { execute_node(running, worker, lock); });
  if (running.call != nullptr && !running.call->deferred()) {
    running.call->end();
    worker.call = std::move(running.call);
  }
}

void Execution::execute_node(Running& running, Worker& worker, Lock& lock) {
  const NodeIndex n = running.node;
  const Node& node = run_.node(n);
  const heddle_node_desc& desc = node.type->desc();
  RunDevice& device = device_of(n);
  running.begin = worker.now == Clock::time_point() ? Clock::now() : worker.now;
  running.instance = Instance(*node.type, environment_.host);
  running.call->begin(node, device, run_.place(n), n);
  running.is_mapped = node.is_mapped;
  if (has_begun_ && !take_early(running, lock)) [[unlikely]]
    return;  // it comes again
  if (!running.early.empty()) [[unlikely]] {
    if (!give_early(running, lock)) return;
  } else if (node.is_mapped || node.type->takes_lists() || !give_inputs(running)) [[unlikely]] {
    give_lists(running, {});
  }
  if (desc.need != nullptr && !running.call->is_blocked() && !has_lazy_inputs(running, lock)) {
    if (!running.has_flight) return;  // it comes again with them
    leave(lock);
    drop_flight(n);
    return enter(lock);
  }
  // What was brought to the host may be of work that has been given up meanwhile.
  if (control_.cancelled()) throw Error(Code::cancelled, "cancelled");
  if (running.early.empty()) [[likely]]
    running.call->reserve_host(run_.host_bytes(n));
  running.call->reserve_device(run_.device_bytes(n));
  models_.check();  // what was made of lost pages goes no further
  if (request_.timeline != nullptr) [[unlikely]]
    trace_begin(running);
  forecast_.began(n);
  read_ahead_.began(n);
  if (observer_.listens())
    observer_.node_started(node, run_.place(n).on_host ? "host" : device.state->device().name());
  if (request_.steps != nullptr) request_.steps->began(n, running.call->device());
  if (worker.place.empty()) worker.place.emplace_back();
  heddle_status* status = nullptr;
  running.call->may_begin_outputs();
  if (running.is_mapped) [[unlikely]]
    execute_elements(running);
  else if (const InNode in_node(told_of(node)); !running.call->is_blocked())
    status = desc.execute(running.instance.self(), running.call.get());
  if (running.is_suspended || running.call->is_suspended()) [[unlikely]] {
    free_status(status);
    if (!running.is_deferred()) return suspend(running, lock);
    status = nullptr;
  }
  if (running.is_deferred()) [[unlikely]] {
    running.keep_failure(status);  // who was to complete it may still do so
    enter(lock);
    worker.place.front() = std::move(running);
    deferred_.splice(deferred_.end(), worker.place);
    return;
  }
  if (status != nullptr && comes_again(running, status->error.code(), lock)) [[unlikely]]
    return free_status(status);
  throw_status(status, "");
  finish_or_hold(running, worker, lock);
}

void Execution::trace_begin(Running& running) {
  running.traced_at = request_.timeline->now();
  if (run_.place(running.node).on_host) return;
  use_.mark(run_.place(running.node).device, run_.node(running.node));
  DeviceState& state = *device_of(running.node).state;
  running.reached = std::make_unique<Event>(state.device());
  state.record(*running.reached);
}

void Execution::trace_end(Running& running) {
  const Node& node = run_.node(running.node);
  const std::string name = cat(node.id, " ", node.type->name());
  DeviceState& state = *device_of(running.node).state;
  const bool on_host = run_.place(running.node).on_host;
  request_.timeline->add_host(on_host ? "host" : state.device().name(), "node", name,
                              running.traced_at);
  if (on_host || !running.call->used_device()) return;
  Event end(state.device());
  state.record(end);
  request_.timeline->add(state, StreamRow::compute, "node", name, std::move(*running.reached),
                         std::move(end), 0);
}

// False: one of them is a list that no port declares, so that there is a call for each element.
bool Execution::give_inputs(Running& running) {
  const NodeIndex n = running.node;
  NodeCall& call = *running.call;
  const Node& node = run_.node(n);
  // Outputs, and what is made of them for this reader, live until it has finished.
  const auto linked = [&](const Source& link, std::uint32_t flags) {
    return transfers_.to_reader(output(link), link, n, flags);
  };
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    const heddle_port& port = node.type->input(i);
    if ((port.flags & HEDDLE_PORT_HIDDEN) != 0) [[unlikely]] {
      call.set_own_input(i, hidden(node, port.type));
    } else if (const auto* literal = std::get_if<Value>(&node.inputs[i])) {
      call.set_input(i, literal->get());
    } else if (const auto* link = std::get_if<Source>(&node.inputs[i])) {
      if ((port.flags & HEDDLE_PORT_LAZY) != 0) continue;  // has_lazy_inputs() gives them
      if ((port.flags & HEDDLE_PORT_LINK) != 0) [[unlikely]] {
        call.set_own_input(i, link_value(*link));
        continue;
      }
      if (Value early = early_input(running, *link, port.flags)) [[unlikely]] {
        call.take_input(i, early.get());
        call.keep(std::move(early));
        continue;
      }
      const heddle_value* const value = linked(*link, port.flags);
      if (value != nullptr && is_spread(*value)) return false;
      call.take_input(i, value);
    }
  }
  for (const auto& [name, binding] : node.extra) {
    if (const auto* literal = std::get_if<Value>(&binding)) call.add_extra(name, *literal);
    if (const auto* link = std::get_if<Source>(&binding)) {
      const heddle_value* const value = linked(*link, extra_flags(node));
      if (value != nullptr && is_spread(*value)) return false;
      if (value != nullptr && is_blocker(*value))
        call.block(*value);
      else
        call.add_extra(name, Value::share(value));
    }
  }
  return true;
}

// What stands in a workflow: [id, number of the output].
Value Execution::link_value(const Source& source) const {
  return make_value(
      List{{make_value(run_.node(source.node).id), make_value(std::int64_t{source.port})}});
}

Value Execution::hidden(const Node& node, std::string_view type) const {
  if (type == "PROMPT") return make_value(request_.prompt_json);
  if (type == "EXTRA_PNGINFO" && !request_.extra_pnginfo_json.empty())
    return make_value(request_.extra_pnginfo_json);
  if (type == "UNIQUE_ID") return make_value(node.id);
  return {};
}

// Asks the node which lazy inputs it wants. True: it has been given all of them, and may run.
// False: it waits for some; then the lock is held.
bool Execution::has_lazy_inputs(Running& running, Lock& lock) {
  const NodeIndex n = running.node;
  const Node& node = run_.node(n);
  std::vector<std::uint32_t> given;
  enter(lock);
  if (const auto found = wanted_.find(n); found != wanted_.end()) given = found->second;
  leave(lock);
  const auto give = [&](const std::vector<std::uint32_t>& inputs) {
    if (running.is_mapped || node.type->takes_lists()) return give_lists(running, given);
    for (const std::uint32_t i : inputs)
      if (const auto* link = std::get_if<Source>(&node.inputs[i])) {
        const heddle_value* const value =
            transfers_.to_reader(output(*link), *link, n, node.type->input(i).flags);
        if (value != nullptr && is_spread(*value)) return give_lists(running, given);
        running.call->take_input(i, value);
      }
  };
  if (!given.empty()) give(given);
  for (;;) {
    std::vector<std::uint32_t> more;
    const auto ask = [&](NodeCall& call) {
      call.clear_wanted();
      if (call.is_blocked()) return;
      throw_status(node.type->desc().need(running.instance.self(), &call), "");
      for (const std::string& name : call.wanted()) {
        const std::uint32_t i = *node.type->find_input(name);
        if (std::ranges::find(given, i) == given.end() && std::ranges::find(more, i) == more.end())
          more.push_back(i);
      }
    };
    if (!running.is_mapped) ask(*running.call);
    for (const auto& element : running.elements) ask(*element);
    if (more.empty()) return true;
    given.insert(given.end(), more.begin(), more.end());
    enter(lock);
    wanted_[n] = given;
    if (want(n, more)) return false;
    leave(lock);
    give(more);  // all of them were there already: ask once more
  }
}

// True: the node has to wait for some of these inputs.
bool Execution::want(NodeIndex n, const std::vector<std::uint32_t>& inputs) {
  const OutputCache::Reading cache = environment_.cache.read();
  const auto is_cached = [&](NodeIndex m) { return take_from_cache(m, cache); };
  bool waits = false;
  for (const std::uint32_t i : inputs)
    if (const auto* link = std::get_if<Source>(&run_.node(n).inputs[i]))
      waits |= schedule_.want(n, *link, is_cached);
  return waits;
}

// Called without the lock, returns with it.
void Execution::finish(Running& running, Worker& worker, Lock& lock) {
  const NodeIndex n = running.node;
  const Node& node = run_.node(n);
  NodeCall& call = *running.call;
  worker.now = Clock::now();
  const double seconds = running.early.empty()
                             ? std::chrono::duration<double>(worker.now - running.begin).count()
                             : running.seconds;
  if (node.type->has(HEDDLE_NODE_EXPANDS) && asks_for_nodes(running)) [[unlikely]]
    return expand(running, seconds, worker, lock);
  if (running.is_mapped) [[unlikely]]
    collect_elements(running);
  if (call.was_told_cancelled()) [[unlikely]] {  // what it has made may be half done
    if (running.has_flight) drop_flight(n);
    enter(lock);
    return fail(std::make_exception_ptr(Error(Code::cancelled, "cancelled")));
  }
  if (!call.blocked_message().empty()) [[unlikely]]
    running.blocked.push_back(call.blocked_message());
  call.release_claim();
  check_outputs(node, call.outputs());
  if (has_begun_) [[unlikely]]
    check_begun(n, call.outputs(), lock);
  models_.check();
  if (request_.timeline != nullptr) [[unlikely]]
    trace_end(running);
  if (!call.is_blocked() && running.early.empty()) node.type->took(seconds);
  if (call.has_called_model() && request_.saved != nullptr) [[unlikely]] {
    enter(lock);
    called_models_.insert(n);
    leave(lock);
  }
  complete({n, call.outputs(), call.take_for_user(), std::move(running.blocked), seconds, true,
            running.has_flight, call.is_not_to_be_cached()},
           worker, lock);
}

// Called without the lock, returns with it.
void Execution::complete(Made&& made, Worker& worker, Lock& lock) {
  const NodeIndex n = made.node;
  const Node& node = run_.node(n);
  made.is_uncached = made.is_uncached || uncached_.are_read_by(node);
  if (made.is_uncached) [[unlikely]]
    uncached_.add(n);
  if (!request_.disk_cached.empty()) [[unlikely]]
    keep_for_disk(made, lock);
  forecast_.made(n, made.outputs);
  forecast_.done(n);
  read_ahead_.done(n);
  if (!made.blocked.empty() || made.has_ui()) [[unlikely]]
    show(made, worker, lock);
  else
    cache(made, made.outputs, worker);
  observer_.node_done(node, made.seconds);
  if (request_.steps != nullptr) request_.steps->done(n, made.outputs);
  worker.copies.clear();
  worker.sent.clear();
  if (made.has_inputs) transfers_.finished(n, worker.copies);
  transfers_.send(n, made.outputs, worker.sent);
  for (std::uint32_t o = 0; o < made.outputs.size(); ++o)
    output({n, o}) = std::move(made.outputs[o]);
  enter(lock);
  if (made.for_user != nullptr) [[unlikely]]
    for (std::string& file : made.for_user->files)
      files_.push_back({schedule_.rank(n), std::move(file)});
  result_.timings.push_back({n, made.seconds, false});
  for (const auto& [port, links] : worker.sent) schedule_.give_copies({n, port}, links);
  schedule_.finish_outputs(n, [&](const Source& source) { drop_output(source, worker); });
  if (has_begun_) [[unlikely]]
    end_outputs(n, worker);
  if (made.has_inputs) finish_inputs(n, worker);
  if (request_.checkpoints != nullptr) [[unlikely]]
    note_ended(n, lock);
}

// What a node has read, it needs no more. Of copies worker.copies tells. With the lock.
void Execution::finish_inputs(NodeIndex n, Worker& worker) {
  const auto reads_copy = [&](const Source& source, std::uint32_t flags) {
    return !worker.copies.empty() && (flags & HEDDLE_PORT_PASS) == 0 &&
           std::ranges::find(worker.copies, transfers_.reading(source, n, flags)) !=
               worker.copies.end();
  };
  schedule_.finish_inputs(n, reads_copy,
                          [&](const Source& source) { drop_output(source, worker); });
}

// Called without the lock. Whoever waits for what only this run gets looks for itself.
void Execution::cache(const Made& made, std::span<const Value> values, Worker& worker) {
  if (made.has_flight) [[unlikely]] {
    if (made.is_uncached) return drop_flight(made.node);
    return finish_flight(made, values);
  }
  if (const Hash128& key = key_of(made.node); key != Hash128() && !made.is_uncached)
    worker.adding.add(key, values, made.seconds, work_so_far());
}

// What the node shows and its blockers' messages stand in the cache behind its outputs. No lock.
void Execution::show(const Made& made, Worker& worker, Lock& lock) {
  const Node& node = run_.node(made.node);
  const std::string ui = made.has_ui() ? write_json(made.for_user->ui) : std::string();
  if (key_of(made.node) != Hash128()) {
    std::vector<Value> with_ui(made.outputs.begin(), made.outputs.end());
    with_ui.push_back(make_value(ui));
    for (const std::string& message : made.blocked) with_ui.push_back(make_value(message));
    cache(made, with_ui, worker);
  }
  for (const std::string& message : made.blocked) observer_.node_blocked(node, message);
  if (ui.empty()) return;
  observer_.node_shows(node, ui);
  enter(lock);
  result_.ui.emplace(made.node, ui);
  leave(lock);
}

void Execution::keep_for_disk(const Made& made, Lock& lock) {
  if (!request_.disk_cached.contains(made.node) || made.is_uncached ||
      std::ranges::any_of(made.outputs, holds_blocker) || made.outputs.empty())
    return;
  std::vector<Value> values(made.outputs.begin(), made.outputs.end());
  enter(lock);
  result_.to_cache_on_disk.emplace_back(made.node, std::move(values));
  leave(lock);
}

}  // namespace heddle::engine
