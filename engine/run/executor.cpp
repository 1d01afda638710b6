#include "engine/run/executor.h"

#include <chrono>
#include <condition_variable>
#include <optional>
#include <queue>
#include <set>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/run/keys.h"
#include "engine/run/node_call.h"

namespace heddle::core {

namespace {

using Clock = std::chrono::steady_clock;

// An instance of a node, destroyed with the call.
class Instance {
 public:
  Instance(const NodeType& type, const heddle_host* host) : type_(type) {
    if (type.desc().create != nullptr) throw_status(type.desc().create(host, &self_), "");
  }
  ~Instance() {
    if (type_.desc().destroy != nullptr && self_ != nullptr) type_.desc().destroy(self_);
  }
  Instance(const Instance&) = delete;
  void* self() const { return self_; }

 private:
  const NodeType& type_;
  void* self_ = nullptr;
};

class Execution {
 public:
  Execution(const RunRequest& request, Environment& environment, Observer& observer, RunControl& control)
      : request_(request), graph_(*request.graph), plan_(*request.plan), environment_(environment), observer_(observer), control_(control),
        shared_{environment, observer, control, [this](NodeCall& call, heddle_status* status) { on_complete(call, status); }},
        nodes_(graph_.nodes.size()) {}

  RunResult run() {
    for (std::uint32_t rank = 0; rank < graph_.order.size(); ++rank) nodes_[graph_.order[rank]].rank = rank;
    find_keys();
    for (const NodeIndex sink : graph_.sinks) activate(sink);
    for (const Source& source : request_.keep) {
      activate(source.node);
      ++nodes_[source.node].readers;
    }
    try {
      drive();
    } catch (...) {
      wait_for_deferred();
      settle_devices();
      throw;
    }
    for (const RunDevice& device : environment_.devices) device.state->synchronize();
    for (const Source& source : request_.keep) result_.kept[source] = nodes_[source.node].outputs.at(source.port);
    return std::move(result_);
  }

 private:
  struct NodeState {
    std::uint32_t rank = 0;
    std::uint32_t waiting = 0;   // producers that are not done
    std::uint32_t readers = 0;   // active nodes that will still read the outputs
    bool active = false, done = false, cached = false;
    std::optional<Hash128> key;
    std::vector<NodeIndex> waiters;
    std::vector<Value> outputs;
    std::shared_ptr<const CachedOutputs> from_cache;
    std::set<std::string, std::less<>> wanted;  // lazy inputs asked for
  };
  struct Running {
    std::unique_ptr<Instance> instance;
    std::unique_ptr<NodeCall> call;
    NodeIndex node = 0;
    Clock::time_point begin;
  };

  RunDevice& device_of(NodeIndex n) { return environment_.devices[plan_.places[n].device]; }

  void find_keys() {
    const auto keys = output_keys(
        graph_,
        [&](NodeIndex n) {
          if (plan_.places[n].on_host) return std::string();
          const Device& device = device_of(n).state->device();
          return cat(device.kind(), "/", device.model(), "/", int(device.compute()));
        },
        [&](NodeIndex n) { return fingerprint(n); });
    for (NodeIndex n = 0; n < nodes_.size(); ++n) nodes_[n].key = keys[n];
  }

  std::uint64_t fingerprint(NodeIndex n) {
    const Node& node = graph_.nodes[n];
    try {
      const Instance instance(*node.type, environment_.host);
      NodeCall call(shared_, node, device_of(n), plan_.places[n].on_host);
      for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
        if (const auto* literal = std::get_if<Value>(&node.inputs[i])) call.set_input(i, *literal);
      std::uint64_t hash = 0;
      throw_status(node.type->desc().fingerprint(instance.self(), &call, &hash), "");
      return hash;
    } catch (Error& error) {
      error.at(graph_.name_of(n));
      throw;
    }
  }

  bool is_lazy(const Node& node, std::uint32_t input) const { return (node.type->input(input).flags & HEDDLE_PORT_LAZY) != 0; }

  // Marks a node, and what it needs, as to be computed; iterative, because chains are long.
  void activate(NodeIndex root) {
    std::vector<NodeIndex> stack{root};
    while (!stack.empty()) {
      const NodeIndex n = stack.back();
      stack.pop_back();
      NodeState& state = nodes_[n];
      if (state.active) continue;
      state.active = true;
      if (state.key) state.from_cache = environment_.cache.find(*state.key);
      if (!state.from_cache) {
        const Node& node = graph_.nodes[n];
        for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
          if (const auto* link = std::get_if<Source>(&node.inputs[i]); link != nullptr && !is_lazy(node, i)) depend(n, *link, stack);
        for (const auto& [name, binding] : node.extra)
          if (const auto* link = std::get_if<Source>(&binding)) depend(n, *link, stack);
      }
      if (state.waiting == 0) ready_.push({state.rank, n});
    }
  }

  void depend(NodeIndex reader, const Source& source, std::vector<NodeIndex>& stack) {
    NodeState& producer = nodes_[source.node];
    ++producer.readers;
    if (producer.done) return;
    producer.waiters.push_back(reader);
    ++nodes_[reader].waiting;
    stack.push_back(source.node);
  }

  void drive() {
    for (;;) {
      while (!ready_.empty()) {
        control_.wait_while_paused();
        if (control_.cancelled()) throw Error(Code::cancelled, "cancelled");
        const NodeIndex n = ready_.top().second;
        ready_.pop();
        start(n);
      }
      if (deferred_.empty()) return;
      finish_deferred();
    }
  }

  void start(NodeIndex n) {
    NodeState& state = nodes_[n];
    const Node& node = graph_.nodes[n];
    if (state.from_cache) {
      observer_.node_cached(node);
      state.cached = true;
      state.outputs = state.from_cache->outputs;
      finish(n, 0);
      return;
    }
    Running running{nullptr, nullptr, n, Clock::now()};
    try {
      observer_.node_started(node, plan_.places[n].on_host ? "host" : device_of(n).state->device().name());
      running.instance = std::make_unique<Instance>(*node.type, environment_.host);
      running.call = std::make_unique<NodeCall>(shared_, node, device_of(n), plan_.places[n].on_host);
      give_inputs(n, *running.call);
      if (node.type->desc().need != nullptr && !ask_for_lazy(n, running)) return;  // it comes again when they are there
      heddle_status* const status = node.type->desc().execute(running.instance->self(), running.call.get());
      if (running.call->deferred() && status == nullptr) {
        NodeCall* const key = running.call.get();
        deferred_.emplace(key, std::move(running));
        return;
      }
      throw_status(status, "");
      take_outputs(running);
    } catch (Error& error) {
      error.at(graph_.name_of(n));
      throw;
    }
  }

  void give_inputs(NodeIndex n, NodeCall& call) {
    const Node& node = graph_.nodes[n];
    const auto value_of = [&](const Binding& binding, std::uint32_t flags) -> Value {
      if (const auto* literal = std::get_if<Value>(&binding)) return *literal;
      const auto* link = std::get_if<Source>(&binding);
      if (link == nullptr || !nodes_[link->node].done) return {};
      return move_to_reader(nodes_[link->node].outputs[link->port], n, flags);
    };
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const heddle_port& port = node.type->input(i);
      if ((port.flags & HEDDLE_PORT_HIDDEN) != 0) call.set_input(i, hidden(node, port.type));
      else if (!is_lazy(node, i) || !std::holds_alternative<Source>(node.inputs[i]) || nodes_[n].wanted.contains(port.name))
        call.set_input(i, value_of(node.inputs[i], port.flags));
    }
    for (const auto& [name, binding] : node.extra)
      if (Value value = value_of(binding, 0)) call.add_extra(name, std::move(value));
  }

  Value hidden(const Node& node, std::string_view type) const {
    if (type == "PROMPT") return make_value(request_.prompt_json);
    if (type == "EXTRA_PNGINFO") return request_.extra_pnginfo_json.empty() ? Value() : make_value(request_.extra_pnginfo_json);
    if (type == "UNIQUE_ID") return make_value(node.id);
    return {};
  }

  // The value where the reader can use it: on its device, or in host memory and finished.
  Value move_to_reader(const Value& value, NodeIndex reader, std::uint32_t flags) {
    if (!value || (flags & HEDDLE_PORT_PASS) != 0) return value;
    DeviceState& device = *device_of(reader).state;
    const bool to_host = plan_.places[reader].on_host || (flags & HEDDLE_PORT_HOST) != 0;
    return map_tensors(value, [&](const Tensor& tensor) -> Tensor {
      if (!to_host) return device.bring(tensor);
      const auto* memory = dynamic_cast<const DeviceMemory*>(tensor->storage.get());
      if (memory == nullptr || memory->state().device().host_visible()) {
        tensor->storage->wait();
        return tensor;
      }
      heddle_tensor_info info = tensor->info;
      std::fill(std::begin(info.stride), std::end(info.stride), 0);
      const Tensor host = make_host_tensor(checked_info(info, "transfer"));
      device.read(tensor, host->data(), dense_bytes(host->info));
      return host;
    });
  }

  // Asks the node which lazy inputs it wants. True: it has all of them and may run now.
  bool ask_for_lazy(NodeIndex n, Running& running) {
    const Node& node = graph_.nodes[n];
    throw_status(node.type->desc().need(running.instance->self(), running.call.get()), "");
    std::vector<NodeIndex> stack;
    for (const std::string& name : running.call->wanted()) {
      const std::uint32_t i = *node.type->find_input(name);
      if (!nodes_[n].wanted.insert(name).second) continue;
      if (const auto* link = std::get_if<Source>(&node.inputs[i])) depend(n, *link, stack);
    }
    for (const NodeIndex wanted : stack) activate(wanted);
    if (nodes_[n].waiting > 0) return false;
    if (!running.call->wanted().empty()) {  // all of them were there already: give them, and ask once more
      give_inputs(n, *running.call);
      running.call->clear_wanted();
      throw_status(node.type->desc().need(running.instance->self(), running.call.get()), "");
      for (const std::string& name : running.call->wanted())
        if (!nodes_[n].wanted.contains(name)) {
          ready_.push({nodes_[n].rank, n});
          return false;
        }
    }
    return true;
  }

  void take_outputs(Running& running) {
    const NodeIndex n = running.node;
    const Node& node = graph_.nodes[n];
    NodeState& state = nodes_[n];
    state.outputs = std::move(running.call->outputs());
    for (std::uint32_t i = 0; i < state.outputs.size(); ++i)
      if (!state.outputs[i]) throw Error(Code::internal, cat("the node did not set its output ", quote(node.type->output(i).name)));
    const double seconds = std::chrono::duration<double>(Clock::now() - running.begin).count();
    std::vector<std::string> files = running.call->files();
    result_.files.insert(result_.files.end(), files.begin(), files.end());
    if (state.key) environment_.cache.add(*state.key, {state.outputs, std::move(files)}, seconds);
    observer_.node_done(node, seconds);
    finish(n, seconds);
  }

  void finish(NodeIndex n, double seconds) {
    NodeState& state = nodes_[n];
    state.done = true;
    result_.timings.push_back({n, seconds, state.cached});
    for (const NodeIndex waiter : state.waiters)
      if (--nodes_[waiter].waiting == 0) ready_.push({nodes_[waiter].rank, waiter});
    state.waiters.clear();
    if (state.cached) return;
    // What this node read has one reader less.
    const Node& node = graph_.nodes[n];
    const auto release = [&](const Binding& binding) {
      const auto* link = std::get_if<Source>(&binding);
      if (link == nullptr) return;
      NodeState& producer = nodes_[link->node];
      if (producer.readers > 0 && --producer.readers == 0 && producer.done) producer.outputs.assign(producer.outputs.size(), {});
    };
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
      if (!is_lazy(node, i)) release(node.inputs[i]);
    for (const auto& [name, binding] : node.extra) release(binding);
  }

  void on_complete(NodeCall& call, heddle_status* status) {
    const auto mailbox = mailbox_.lock();
    mailbox->push_back({&call, status});
    arrived_.notify_one();
  }

  void finish_deferred() {
    std::vector<std::pair<NodeCall*, heddle_status*>> finished;
    {
      auto mailbox = mailbox_.lock();
      mailbox.wait(arrived_, [](const auto& m) { return !m.empty(); });
      finished.swap(*mailbox);
    }
    std::optional<Error> failure;
    for (auto& [call, status] : finished) {
      const auto at = deferred_.find(call);
      Running running = std::move(at->second);
      deferred_.erase(at);
      try {
        throw_status(status, "");
        if (!failure) take_outputs(running);
      } catch (Error& error) {
        error.at(graph_.name_of(running.node));
        if (!failure) failure = error;
      }
    }
    if (failure) throw *failure;
  }

  // Their calls must outlive them, so a failed run waits, and what they say no longer matters.
  void wait_for_deferred() noexcept {
    while (!deferred_.empty()) {
      try {
        finish_deferred();
      } catch (...) {
      }
    }
  }

  void settle_devices() noexcept {
    for (const RunDevice& device : environment_.devices) device.state->settle();
  }

  const RunRequest& request_;
  const Graph& graph_;
  const Plan& plan_;
  Environment& environment_;
  Observer& observer_;
  RunControl& control_;
  const NodeCall::Shared shared_;
  std::vector<NodeState> nodes_;
  using Ready = std::pair<std::uint32_t, NodeIndex>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
  std::map<NodeCall*, Running> deferred_;
  Guarded<std::vector<std::pair<NodeCall*, heddle_status*>>> mailbox_;
  std::condition_variable arrived_;
  RunResult result_;
};

}  // namespace

RunResult execute(const RunRequest& request, Environment& environment, Observer& observer, RunControl& control) {
  return Execution(request, environment, observer, control).run();
}

}  // namespace heddle::core
