// Nodes that read lists (engine/graph/lists.h): the calls of one for each element, or the one call
// that gets lists whole.
#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/graph/lists.h"
#include "engine/run/execution.h"

namespace heddle::engine {

namespace {

const std::vector<Value>& items_of(const Value& list) {
  return std::get<List>(list->content).items;
}

std::string place_of(std::size_t element, std::size_t count) {
  return cat("call ", element + 1, " of ", count);
}

}  // namespace

bool Execution::Running::has(const NodeCall* one) const {
  return call.get() == one ||
         std::ranges::any_of(elements, [&](const auto& element) { return element.get() == one; });
}

bool Execution::Running::complete(heddle_status* status) {
  if (open > 0) --open;
  keep_failure(status);
  return open == 0;
}

void Execution::Running::keep_failure(heddle_status* status) {
  if (failure != nullptr) {
    free_status(status);  // the first counts
  } else if (status != nullptr) {
    try {
      throw_status(status, "");
    } catch (...) {
      failure = std::current_exception();
    }
  }
}

// Lazy inputs but for those of `lazy` are not there yet, and so not given.
std::vector<Execution::Given> Execution::given_inputs(NodeIndex n,
                                                      const std::vector<std::uint32_t>& lazy) {
  const Node& node = run_.node(n);
  std::vector<Given> inputs;
  const auto add = [&](std::uint32_t i, const std::string* extra, const Binding& binding,
                       std::uint32_t flags) {
    if (const auto* literal = std::get_if<Value>(&binding)) {
      inputs.push_back({i, extra, *literal});
    } else if (const auto* link = std::get_if<Source>(&binding)) {
      if ((flags & HEDDLE_PORT_LINK) != 0) return inputs.push_back({i, extra, link_value(*link)});
      const heddle_value* value = transfers_.to_reader(output(*link), *link, n, flags);
      if (value != nullptr)
        inputs.push_back(
            {i, extra, Value::share(value), true, run_.is_list(*link) || is_spread(*value)});
    }
  };
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    const heddle_port& port = node.type->input(i);
    if ((port.flags & HEDDLE_PORT_HIDDEN) != 0)
      inputs.push_back({i, nullptr, hidden(node, port.type)});
    else if ((port.flags & HEDDLE_PORT_LAZY) == 0 ||
             !std::holds_alternative<Source>(node.inputs[i]) ||
             std::ranges::find(lazy, i) != lazy.end())
      add(i, nullptr, node.inputs[i], port.flags);
  }
  for (const auto& [name, binding] : node.extra) add(0, &name, binding, extra_flags(node));
  return inputs;
}

namespace {

// As many as the longest list has elements. Throws for lists of which only some are empty: nothing
// can stand for the elements that they lack.
template <class Given>
std::size_t count_calls(const Node& node, const std::vector<Given>& inputs) {
  const auto name = [&](const Given& one) {
    return one.extra != nullptr ? *one.extra : std::string(node.type->input(one.input).name);
  };
  const Given *shortest = nullptr, *longest = nullptr;
  for (const Given& one : inputs) {
    if (!one.is_list) continue;
    const std::size_t length = items_of(one.value).size();
    if (shortest == nullptr || length < items_of(shortest->value).size()) shortest = &one;
    if (longest == nullptr || length > items_of(longest->value).size()) longest = &one;
  }
  if (longest == nullptr) return 1;  // its lists are lazy, and none was asked for yet
  const std::size_t count = items_of(longest->value).size();
  if (count > 0 && items_of(shortest->value).empty())
    throw Error(Code::invalid_argument,
                cat("input ", quote(name(*shortest)), ": the list is empty, but the one of input ",
                    quote(name(*longest)), " has ", count,
                    " elements. Give lists that are both empty, or none that is."));
  return count;
}

// `item`: the element of a list, where the call gets one.
template <class Given>
void give(NodeCall& call, const Given& one, Value item) {
  if (one.is_link && is_blocker(*item)) return call.block(*item);
  if (one.extra != nullptr) return call.add_extra(*one.extra, std::move(item));
  const heddle_value* const value = item.get();
  call.set_own_input(one.input, std::move(item));
  if (one.is_link) call.take_input(one.input, value);
}

template <class Given>
void give_whole(NodeCall& call, const Node& node, const std::vector<Given>& inputs) {
  for (const Given& one : inputs) {
    const heddle_value* const blocker = one.is_list ? find_blocker(*one.value)
                                        : one.is_link && is_blocker(*one.value) ? one.value.get()
                                                                                : nullptr;
    if (blocker != nullptr) return call.block(*blocker);
    const bool wants_list =
        one.extra != nullptr || (node.type->input(one.input).flags & HEDDLE_PORT_LIST) != 0;
    Value value = one.value;
    if (wants_list && !one.is_list) value = make_value(List{{value}});
    if (!wants_list && one.is_list) {
      if (items_of(value).empty())
        throw Error(Code::invalid_argument, cat("input ", quote(node.type->input(one.input).name),
                                                ": the list is empty, and one element is needed"));
      value = items_of(value).front();
    }
    if (wants_list && one.extra == nullptr)
      call.take_list(one.input, std::move(value));
    else
      give(call, one, std::move(value));
  }
}

}  // namespace

void Execution::give_lists(Running& running, const std::vector<std::uint32_t>& lazy) {
  const NodeIndex n = running.node;
  const Node& node = run_.node(n);
  const std::vector<Given> inputs = given_inputs(n, lazy);
  running.call->end();
  running.call->begin(node, device_of(n), run_.place(n), n);
  running.is_mapped = !node.type->takes_lists();
  if (!running.is_mapped) return give_whole(*running.call, node, inputs);
  const std::size_t count = count_calls(node, inputs);
  running.elements.clear();
  for (std::size_t e = 0; e < count; ++e) {
    NodeCall& call = *running.elements.emplace_back(std::make_unique<NodeCall>(call_shared_));
    call.begin(node, device_of(n), run_.place(n), n);
    call.set_element(e, count);
    try {
      for (const Given& one : inputs) {
        const auto item = [&] {
          const std::vector<Value>& items = items_of(one.value);
          return items[std::min(e, items.size() - 1)];
        };
        give(call, one, one.is_list ? item() : one.value);
      }
    } catch (Error& error) {
      error.at(place_of(e, count));
      throw;
    }
  }
}

// Deferred calls go on beside each other; the node is done when all of them are.
void Execution::execute_elements(Running& running) {
  const Node& node = run_.node(running.node);
  const heddle_node_desc& desc = node.type->desc();
  const std::size_t count = running.elements.size();
  for (std::size_t e = 0; e < count && running.failure == nullptr; ++e) {
    NodeCall& call = *running.elements[e];
    if (call.is_blocked() || take_element(running.node, e, call)) continue;
    try {
      if (control_.cancelled()) throw Error(Code::cancelled, "cancelled");
      const InNode in_node(told_of(node));
      heddle_status* const status = desc.execute(running.instance.self(), &call);
      if (call.is_suspended()) {
        free_status(status);
        running.is_suspended = true;
        return keep_elements(running, e);
      }
      if (call.deferred()) ++running.open;  // also where it has failed meanwhile
      throw_status(status, "");
      if (request_.checkpoints != nullptr) keep_elements(running, e + 1);
    } catch (Error& error) {
      error.at(place_of(e, count));
      running.failure = std::current_exception();
    } catch (...) {
      running.failure = std::current_exception();
    }
  }
  if (running.failure != nullptr && running.open == 0) std::rethrow_exception(running.failure);
}

// Each output becomes the list of what the calls have made, lists being joined.
void Execution::collect_elements(Running& running) {
  const Node& node = run_.node(running.node);
  for (std::uint32_t o = 0; o < node.type->output_count(); ++o) {
    const heddle_port& port = node.type->output(o);
    List list;
    for (std::size_t e = 0; e < running.elements.size(); ++e) {
      Value made = std::move(running.elements[e]->outputs()[o]);
      if (!made)
        throw Error(Code::internal, cat("the node did not set its output ", quote(port.name),
                                        " in ", place_of(e, running.elements.size())));
      if ((port.flags & HEDDLE_PORT_LIST) == 0) {
        list.items.push_back(std::move(made));
      } else if (const auto* part = std::get_if<List>(&made->content)) {
        list.items.insert(list.items.end(), part->items.begin(), part->items.end());
      } else {
        throw Error(Code::internal,
                    cat("the output ", quote(port.name), " is a list, the node set it to ",
                        describe(*made), " in ", place_of(e, running.elements.size())));
      }
    }
    list.is_spread = !run_.is_list({running.node, o});
    running.call->set_output(o, make_value(std::move(list)));
  }
  for (const auto& element : running.elements) {
    running.call->absorb(*element);
    if (!element->blocked_message().empty()) running.blocked.push_back(element->blocked_message());
  }
  running.elements.clear();
}

}  // namespace heddle::engine
