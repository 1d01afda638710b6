// Nodes that ask for new ones while they run: the new nodes are planned and added to the run, and
// whoever asked gives what they have made.
#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/run/execution.h"

namespace heddle::engine {

bool Execution::asks_for_nodes(const Running& running) {
  return running.call->asked() != nullptr ||
         std::ranges::any_of(running.elements,
                             [](const auto& call) { return call->asked() != nullptr; });
}

// The calls are over: what they have given, with an empty value where a link is to stand.
Execution::Expanding Execution::take_outputs(Running& running, Asked& asked) {
  const Node& node = run_.node(running.node);
  Expanding expanding;
  const auto take = [&](NodeCall& call, const std::string& where) {
    asked.push_back(call.take_asked());
    if (asked.back() == nullptr) asked.back() = std::make_unique<NewNodes>();
    std::vector<bool> is_linked(call.outputs().size(), false);
    for (const auto& [output, link] : asked.back()->outputs) {
      if (output >= is_linked.size())
        throw Error(Code::invalid_argument, cat(node.type->name(), " has ", is_linked.size(),
                                                " outputs, it linked number ", output, where));
      is_linked[output] = true;
    }
    std::vector<Expanding::Output>& outputs = expanding.calls.emplace_back();
    for (std::uint32_t o = 0; o < is_linked.size(); ++o) {
      Value& made = call.outputs()[o];
      if (!made && !is_linked[o])
        throw Error(Code::internal, cat("the node did not set its output ",
                                        quote(node.type->output(o).name), where));
      outputs.emplace_back(is_linked[o] ? Value() : std::move(made));
    }
    if (!call.blocked_message().empty()) expanding.blocked.push_back(call.blocked_message());
  };
  for (std::size_t e = 0; e < running.elements.size(); ++e) {
    take(*running.elements[e], cat(" in call ", e + 1, " of ", running.elements.size()));
    running.call->absorb(*running.elements[e]);
  }
  if (!running.is_mapped) take(*running.call, "");
  expanding.for_user = running.call->take_for_user();
  running.elements.clear();
  return expanding;
}

// Called without the lock, returns with it.
void Execution::expand(Running& running, double seconds, Worker& worker, Lock& lock) {
  const NodeIndex n = running.node;
  running.call->release_claim();
  models_.check();
  if (request_.timeline != nullptr) trace_end(running);
  run_.node(n).type->took(seconds);
  Asked asked;
  Expanding expanding = take_outputs(running, asked);
  expanding.seconds = seconds;
  std::vector<const NewNodes*> calls;
  for (const auto& one : asked) calls.push_back(one.get());
  const std::lock_guard growing(growing_);
  std::vector<Source> held;
  Expander::Batch batch = plan_nodes(n, calls, held, lock);
  worker.adding.flush();  // what has gone since may be found there
  enter(lock);
  add_nodes(n, batch, calls, std::move(expanding));
  for (const Source& source : held)
    schedule_.release(source, [&](const Source& unread) { drop_output(unread, worker); });
  worker.copies.clear();
  transfers_.finished(n, worker.copies);
  finish_inputs(n, worker);
}

// Of the run's outputs that the new nodes read, those that are there stay until they are added:
// `held`. Without the lock.
Expander::Batch Execution::plan_nodes(NodeIndex n, std::span<const NewNodes* const> calls,
                                      std::vector<Source>& held, Lock& lock) {
  Expander& expander = expander_here();
  Expander::Batch batch = expander.read(n, calls);
  enter(lock);
  expander.resolve(batch, calls, [&](const Source& source) {
    const bool is_done = schedule_.is_done(source.node);
    if (is_done && !output(source)) return Expander::Standing::gone;
    schedule_.hold(source);
    held.push_back(source);
    return is_done ? Expander::Standing::made : Expander::Standing::to_come;
  });
  leave(lock);
  UsedFiles files;
  expander.plan(batch, {device_classes_, [this](NodeIndex m) { return key_of(m); },
                        [&](const Node& node, const Assignment& place) {
                          return fingerprint(node, place, files);
                        }});
  return batch;
}

// With the lock. From here on the node waits for what it gives, and the sinks among the new nodes
// run.
void Execution::add_nodes(NodeIndex n, Expander::Batch& batch,
                          std::span<const NewNodes* const> calls, Expanding expanding) {
  expander_->add(batch);
  for (const NodeIndex added : batch.index) {
    schedule_.add(added);
    transfers_.add(added);
  }
  if (request_.anew) forget_kept(batch.index);
  const OutputCache::Reading cache = environment_.cache.read();
  const auto is_cached = [&](NodeIndex m) { return take_from_cache(m, cache); };
  for (std::size_t c = 0; c < calls.size(); ++c)
    for (std::size_t l = 0; l < calls[c]->outputs.size(); ++l) {
      const Source source = Expander::in_run(batch, batch.results[c][l]);
      Expanding::Output& output = expanding.calls[c][calls[c]->outputs[l].first];
      if (const auto* before = std::get_if<Source>(&output))  // linked once more: the last counts
        schedule_.release(*before, [](const Source&) {});
      output = source;
      schedule_.hold(source);
      schedule_.wait_until(n, source.node, is_cached);
    }
  for (const NodeIndex added : batch.index)
    if (run_.node(added).type->has(HEDDLE_NODE_SINK) && run_.node(added).origin != nullptr)
      schedule_.activate(added, is_cached);
  expanding_.emplace(n, std::move(expanding));
  if (!schedule_.is_waiting(n)) schedule_.make_ready(n);
}

// All that the node waited for is there. Called without the lock, returns with it.
void Execution::finish_expanded(NodeIndex n, Worker& worker, Lock& lock) {
  enter(lock);
  Expanding expanding = std::move(expanding_.extract(n).mapped());
  leave(lock);
  guard_node(n, false, lock, [&] { collect_expanded(n, std::move(expanding), worker, lock); });
}

void Execution::collect_expanded(NodeIndex n, Expanding expanding, Worker& worker, Lock& lock) {
  std::vector<Value> outputs;
  for (std::uint32_t o = 0; o < run_.node(n).type->output_count(); ++o)
    outputs.push_back(collect_output(n, o, expanding));
  complete({n, outputs, std::move(expanding.for_user), std::move(expanding.blocked),
            expanding.seconds, false},
           worker, lock);
  for (const auto& call : expanding.calls)
    for (const Expanding::Output& output : call)
      if (const auto* source = std::get_if<Source>(&output))
        schedule_.release(*source, [&](const Source& unread) { drop_output(unread, worker); });
}

// A link to a list gives all of it; of several calls all are joined, in their order.
Value Execution::collect_output(NodeIndex n, std::uint32_t o, const Expanding& expanding) {
  const heddle_port& port = run_.node(n).type->output(o);
  List all;
  const auto join = [&](const Value& value, bool is_list) {
    if (!is_list) return all.items.push_back(value);
    const auto* list = std::get_if<List>(&value->content);
    if (list == nullptr)
      throw Error(Code::internal, cat("the output ", quote(port.name),
                                      " is a list, the node set it to ", describe(*value)));
    all.items.insert(all.items.end(), list->items.begin(), list->items.end());
  };
  for (const auto& call : expanding.calls) {
    if (const auto* source = std::get_if<Source>(&call[o])) {
      const Value& made = output(*source);
      join(made, run_.is_list(*source) || is_spread(*made));
    } else {
      join(std::get<Value>(call[o]), (port.flags & HEDDLE_PORT_LIST) != 0);
    }
  }
  const bool is_list = run_.is_list({n, o});
  if (!is_list && all.items.size() == 1) return all.items.front();
  all.is_spread = !is_list;
  return make_value(std::move(all));
}

// REQUIRES: growing_ held.
Expander& Execution::expander_here() {
  if (expander_ == nullptr) expander_ = std::make_unique<Expander>(run_, environment_);
  return *expander_;
}

Value Execution::look_up(std::string_view id) {
  const std::lock_guard growing(growing_);
  const NodeIndex n = expander_here().find(id);
  if (n == kGraphInputs) return {};
  const Node& node = run_.node(n);
  Record values, links;
  const auto add = [&](std::string_view name, const Binding& binding) {
    if (const auto* literal = std::get_if<Value>(&binding))
      values.fields.emplace_back(name, *literal);
    else if (const auto* link = std::get_if<Source>(&binding))
      links.fields.emplace_back(name, link_value(*link));
  };
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
    add(node.type->input(i).name, node.inputs[i]);
  for (const auto& [name, binding] : node.extra) add(name, binding);
  const NodeOrigin* const origin = node.origin.get();
  return make_record({{"class_type", make_value(std::string(node.type->name()))},
                      {"values", make_value(std::move(values))},
                      {"links", make_value(std::move(links))},
                      {"display", make_value(origin == nullptr ? node.id : origin->display)},
                      {"parent", make_value(origin == nullptr ? std::string() : origin->parent)},
                      {"real", make_value(origin == nullptr ? node.id : origin->real)}});
}

// Nothing is left to run: nodes that are not done wait for one another.
void Execution::check_cycles() {
  if (failure_ != nullptr || schedule_.unfinished() == 0) return;
  const auto waits_for = [&](NodeIndex n) {
    NodeIndex found = kGraphInputs;
    const auto look = [&](const Source& source) {
      if (schedule_.is_unfinished(source.node)) found = source.node;
    };
    if (const auto expanded = expanding_.find(n); expanded != expanding_.end()) {
      for (const auto& call : expanded->second.calls)
        for (const Expanding::Output& output : call)
          if (const auto* source = std::get_if<Source>(&output)) look(*source);
    } else {
      for_each_link(run_.node(n), [&](const Source& source, std::uint32_t) { look(source); });
    }
    return found;
  };
  NodeIndex at = 0;
  while (!schedule_.is_unfinished(at)) ++at;
  std::vector<NodeIndex> path;
  while (at != kGraphInputs && std::ranges::find(path, at) == path.end()) {
    path.push_back(at);
    at = waits_for(at);
  }
  path.erase(path.begin(), std::ranges::find(path, at));
  const auto came =
      std::ranges::find_if(path, [&](NodeIndex n) { return run_.node(n).origin != nullptr; });
  std::vector<std::string> ids;
  for (const NodeIndex n : path) ids.push_back(quote(run_.node(n).id));
  Error error(Code::invalid_argument, cat("Dependency cycle detected: ", join(ids, " waits for "),
                                          " waits for ", ids.empty() ? "itself" : ids.front()));
  if (!path.empty()) error.at(name_of(run_.node(came == path.end() ? path.front() : *came)));
  failure_ = std::make_exception_ptr(std::move(error));
}

}  // namespace heddle::engine
