// Outputs that are read while they are being made (heddle/abi/parts.h): who reads them begins with
// their first rows, on the host, and ends behind their maker. What a node has made of them is held
// until then, so that nothing else of the run, nor the cache, nor another run, sees what may not
// become whole. It may be read in parts in its turn.
#include <algorithm>

#include "engine/base/caught.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/run/execution.h"
#include "heddle/abi/parts.h"

namespace heddle::engine {

// visit(source, flags of the port) for each link whose value is wanted and whose maker is not done.
// With the lock.
template <class Visit>
void Execution::for_each_unfinished_link(NodeIndex n, Visit&& visit) const {
  for_each_link(run_.node(n), [&](const Source& source, std::uint32_t flags) {
    if ((flags & HEDDLE_PORT_LAZY) == 0 && !schedule_.is_done(source.node)) visit(source, flags);
  });
}

// With the lock.
bool Execution::reads_parts_of(NodeIndex producer, NodeIndex reader) const {
  const Node& node = run_.node(reader);
  bool does = takes_parts(node, run_.place(reader)) && !reads_whole_.contains(reader);
  for_each_link(node, [&](const Source& source, std::uint32_t flags) {
    if (source.node != producer) return;
    does = does && (flags & HEDDLE_PORT_PARTS) != 0 && begun_.contains(source);
  });
  return does;
}

// Some of the node's outputs have begun. False: nobody reads them before they are whole. Who reads
// them may wait for rows of a deferred call, so that another thread has to listen meanwhile. With
// the lock.
bool Execution::let_read(NodeIndex n, Lock& lock) {
  has_begun_ = true;
  const std::uint32_t count =
      schedule_.begin_outputs(n, [&](NodeIndex reader) { return reads_parts_of(n, reader); });
  if (count > 0 && (schedule_.can_take() || !is_shared_)) call_for_help(lock);
  return count > 0;
}

// On the thread of the call, without the lock. A maker on the host has the queue that its readers
// need; so whoever reads parts begins no output by itself.
bool Execution::begin_output(const Source& output, std::shared_ptr<Arrival> arrival) {
  const NodeType& type = *run_.node(output.node).type;
  if (run_.place(output.node).on_host || type.has(HEDDLE_NODE_EXPANDS) ||
      request_.steps != nullptr || (type.output(output.port).flags & HEDDLE_PORT_PARTS) == 0)
    return false;
  Value value = make_value(arrival->tensor());
  Lock lock(mutex_, std::defer_lock);
  enter(lock);
  if (failure_ != nullptr || begun_.contains(output)) return false;
  begun_[output] = {std::move(value), arrival, {arrival}};
  if (let_read(output.node, lock) && !helpers_.empty()) return true;
  begun_.erase(output);  // nobody waits for it, or there is no thread for who does
  return false;
}

void Execution::take_back_output(const Source& output) {
  Lock lock(mutex_, std::defer_lock);
  enter(lock);
  take_back(output.node);
}

// All outputs that the node has begun are going to be others: what was made of them is forgotten.
// Who reads them at the moment finds out by itself. With the lock.
void Execution::take_back(NodeIndex n) {
  const auto forget = [this](NodeIndex of) {
    std::erase_if(begun_, [&](const auto& one) {
      if (one.first.node == of && one.second.own != nullptr) one.second.own->stop();
      return one.first.node == of;
    });
  };
  forget(n);
  std::list<Running> back;
  for (auto at = held_.begin(); at != held_.end();) {
    const auto here = at++;
    if (here->call->is_taken_back()) back.splice(back.end(), held_, here);
  }
  for (Running& running : back) {
    forget(running.node);
    wait_again(running.node);
  }
}

// With the lock.
void Execution::wait_again(NodeIndex n) {
  bool waits = false;
  for_each_unfinished_link(n, [&](const Source& source, std::uint32_t) {
    waits |= schedule_.wait_until(n, source.node, [](NodeIndex) { return false; });
  });
  if (!waits) schedule_.make_ready(n);
}

// From now on it reads nothing in parts. With the lock.
void Execution::wait_for_whole(NodeIndex n) {
  reads_whole_.insert(n);
  wait_again(n);
}

// What the node reads of others that are not done. False: some of it was taken back since the node
// became ready, so it waits again; then the lock is held.
bool Execution::take_early(Running& running, Lock& lock) {
  enter(lock);
  bool is_gone = false;
  for_each_unfinished_link(running.node, [&](const Source& source, std::uint32_t) {
    const auto at = begun_.find(source);
    is_gone = is_gone || at == begun_.end();
    if (is_gone) return;
    running.early.emplace(source, at->second.value);
    for (const auto& arrival : at->second.arrivals) running.call->add_arrival(arrival);
  });
  if (is_gone)
    wait_again(running.node);
  else
    leave(lock);
  return !is_gone;
}

// Gives a node its inputs, of which some are still being made, and claims its room. False: it waits
// for the whole; then the lock is held. Another input has turned out to be a list of which each
// element is a call, or there is no room beside the maker.
bool Execution::give_early(Running& running, Lock& lock) {
  bool is_given = false;
  try {
    is_given = give_inputs(running);
    if (is_given) running.call->reserve_host(run_.host_bytes(running.node));
  } catch (...) {
    if (caught_error().code() != Code::out_of_memory) throw;
    is_given = false;
  }
  if (is_given) return true;
  enter(lock);
  wait_for_whole(running.node);
  return false;
}

// Empty: its maker is done. Other tensors beside those that arrive may lie on devices.
Value Execution::early_input(const Running& running, const Source& source, std::uint32_t flags) {
  if (running.early.empty()) return {};
  const auto at = running.early.find(source);
  if (at == running.early.end() || (flags & HEDDLE_PORT_PASS) != 0)
    return at == running.early.end() ? Value() : at->second;
  return map_tensors(at->second, [](const Tensor& tensor) {
    Transfer transfer(tensor, nullptr);
    return transfer.await();
  });
}

// A call has failed that has read what was being made. True: because that was taken back, and then
// the node waits for what comes instead; or because memory lacked, which its maker may have had,
// and then it waits for the whole. The lock is held then.
bool Execution::comes_again(Running& running, Code code, Lock& lock) {
  if (running.early.empty()) return false;
  enter(lock);
  const bool is_taken_back = running.call->is_taken_back();
  if (failure_ != nullptr || !(is_taken_back || code == Code::out_of_memory)) {
    leave(lock);
    return false;
  }
  if (is_taken_back)
    wait_again(running.node);
  else
    wait_for_whole(running.node);
  return true;
}

// Whether all that the node reads is done. With the lock.
bool Execution::has_all(NodeIndex n) const {
  bool has = true;
  for_each_unfinished_link(n, [&](const Source&, std::uint32_t) { has = false; });
  return has;
}

// Without the lock. A node of which this holds has no flight, and never gets what another run or
// the cache has of it.
bool Execution::reads_unfinished(NodeIndex n, Lock& lock) {
  if (!has_begun_) return false;
  enter(lock);
  const bool reads = !has_all(n);
  leave(lock);
  return reads;
}

// Called without the lock, returns with it.
void Execution::finish_or_hold(Running& running, Worker& worker, Lock& lock) {
  if (running.early.empty()) [[likely]]
    return finish(running, worker, lock);
  const Clock::duration took = Clock::now() - running.begin - running.call->waited();
  running.seconds = std::max(0.0, std::chrono::duration<double>(took).count());
  running.call->release_claim();  // it makes nothing more
  enter(lock);
  const NodeIndex n = running.node;
  if (running.call->is_taken_back() && failure_ == nullptr) return wait_again(n);
  if (has_all(n)) {
    leave(lock);
    return finish(running, worker, lock);
  }
  const NodeCall& call = *running.call;
  const std::vector<std::shared_ptr<Arrival>> arrivals(call.arrivals().begin(),
                                                       call.arrivals().end());
  const std::span<Value> outputs = running.call->outputs();
  for (std::uint32_t o = 0; o < outputs.size(); ++o)
    if (outputs[o] && !is_blocker(*outputs[o]) && kind_of(*outputs[o]) != HEDDLE_KIND_LIST &&
        (run_.node(n).type->output(o).flags & HEDDLE_PORT_PARTS) != 0)
      begun_[{n, o}] = {outputs[o], nullptr, arrivals};
  held_.push_back(std::move(running));
  let_read(n, lock);
}

// Finishes a node whose inputs are whole by now. False: there is none. With the lock.
bool Execution::finish_held(Worker& worker, Lock& lock) {
  const auto at = std::ranges::find_if(held_, [this](const Running& r) { return has_all(r.node); });
  if (at == held_.end()) return false;
  Running running = std::move(*at);
  held_.erase(at);
  ++running_;
  leave(lock);
  guard_node(running.node, false, lock, [&] { finish(running, worker, lock); });
  --running_;
  drop(worker, lock);
  return true;
}

// What others have read has to be what the node gives. Without the lock.
void Execution::check_begun(NodeIndex n, std::span<const Value> outputs, Lock& lock) {
  enter(lock);
  std::optional<std::uint32_t> wrong;
  for (const auto& [source, begun] : begun_) {
    if (source.node != n || begun.own == nullptr) continue;
    const Value& value = outputs[source.port];
    const auto* const tensor = std::get_if<Tensor>(&value->content);
    if (tensor == nullptr || !begun.own->is(**tensor)) wrong = source.port;
  }
  leave(lock);
  if (wrong)
    throw Error(Code::internal,
                cat("the node has begun its output ", quote(run_.node(n).type->output(*wrong).name),
                    " with a tensor and set another one, without taking it back"));
}

// The node is done, so that its outputs are whole. With the lock.
void Execution::end_outputs(NodeIndex n, Worker& worker) {
  for (auto at = begun_.lower_bound({n, 0}); at != begun_.end() && at->first.node == n;) {
    if (at->second.own != nullptr) at->second.own->end();
    worker.dropped.push_back(std::move(at->second.value));
    at = begun_.erase(at);
  }
}

// The run ends: who waits for rows need not go on. With the lock.
void Execution::stop_arrivals() {
  for (const auto& [source, begun] : begun_)
    if (begun.own != nullptr) begun.own->stop();
}

}  // namespace heddle::engine
