// Runs without a workflow's text: an environment of two devices, and graphs whose nodes do what a
// test says.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/status.h"
#include "engine/graph/dag.h"
#include "engine/graph/lists.h"
#include "engine/plugin/devices.h"
#include "engine/plugin/host.h"
#include "engine/resources/available_memory.h"
#include "engine/run/executor.h"
#include "engine/run/node_call.h"
#include "tests/support/test_nodes.h"

namespace heddle::test {

// Threads that wait for one another; whoever waits in vain for very long throws, so that a test
// fails instead of hanging.
class Meeting {
 public:
  // Comes back when `count` callers are here.
  void meet(int count) {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    wait(lock, count);
  }
  void arrive() {
    const std::lock_guard lock(mutex_);
    ++arrived_;
    changed_.notify_all();
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    wait(lock, count);
  }

 private:
  void wait(std::unique_lock<std::mutex>& lock, int count) {
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return arrived_ >= count; }))
      throw engine::Error(engine::Code::internal,
                          "nobody else came: the nodes ran one after another");
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
};

using Action = std::function<void(heddle_ctx&)>;
enum class Place { first, second, host };

struct TestInput {
  engine::Source from;
  std::uint32_t flags = 0;  // of the port
};

// A graph with its plan. Nodes are given in a topological order; each has one output, of any type,
// whose port has the flags `out_flags`.
class Flow {
 public:
  // `need`: which lazy inputs it wants.
  engine::NodeIndex add(const std::string& id, Place place, const std::vector<TestInput>& inputs,
                        Action action, std::uint32_t flags = HEDDLE_NODE_IMPURE,
                        Action need = nullptr, std::uint32_t out_flags = 0) {
    static const char* const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    auto node = std::make_shared<TestNode>("test.action", flags);
    for (std::size_t i = 0; i < inputs.size(); ++i) node->in(names[i], "*", inputs[i].flags);
    node->out("*", "out", out_flags);
    node->desc.execute = [](void*, heddle_ctx* ctx) { return call(ctx, &Behaviour::action); };
    if (need != nullptr)
      node->desc.need = [](void*, heddle_ctx* ctx) { return call(ctx, &Behaviour::need); };
    engine::Node made;
    auto behaviour = std::make_unique<Behaviour>(Behaviour{std::move(action), std::move(need)});
    made.id = id;
    made.type = type_of(std::move(node));
    for (const TestInput& input : inputs) made.inputs.emplace_back(input.from);
    const auto n = static_cast<engine::NodeIndex>(graph.nodes.size());
    node_of_id()[id] = behaviour.get();
    behaviours_.push_back(std::move(behaviour));
    graph.nodes.push_back(std::move(made));
    graph.order.push_back(n);
    if ((flags & HEDDLE_NODE_SINK) != 0) graph.sinks.push_back(n);
    const std::uint32_t device = place == Place::second ? 1 : 0;
    plan.assignments.push_back({device, {device}, place == Place::host, "by the test", {}});
    engine::mark_mapped(graph);
    return n;
  }
  engine::RunRequest request(std::vector<engine::Source> fetch = {}) const {
    return {&graph, &plan, "", "", std::move(fetch)};
  }

  engine::Graph graph;
  engine::Plan plan;

 private:
  struct Behaviour {
    Action action, need;
  };
  // How the function of a desc finds what its node does; one flow is made at a time.
  static std::map<std::string, Behaviour*>& node_of_id() {
    static std::map<std::string, Behaviour*> behaviours;
    return behaviours;
  }
  static heddle_status* call(heddle_ctx* ctx, Action Behaviour::*what) {
    return engine::to_status([&] { (node_of_id().at(ctx->node())->*what)(*ctx); });
  }
  std::vector<std::unique_ptr<Behaviour>> behaviours_;
};

// Two devices and the plain loops of the cpu plugin.
struct TwoDevices {
  engine::LoadedPlugins plugins = engine::load_plugins({HEDDLE_PLUGINS_DIR "/cpu.so"});
  engine::Environment environment;
  engine::Observer quiet;

  explicit TwoDevices(std::uint64_t cache_bytes = std::uint64_t{64} << 20)
      : environment(cache_bytes) {
    environment.host = engine::plugin_host();
    environment.catalog = plugins.catalog;
    environment.devices = engine::open_devices(
        plugins, {.names = {"cpu:0", "cpu:1"}, .threads = 1, .reference_kernels = true});
    environment.topology = engine::topology_of(environment.devices);
    engine::install_eviction(environment);
  }
  engine::RunResult run(const Flow& flow, std::vector<engine::Source> fetch = {}) {
    engine::RunControl control;
    return engine::execute(flow.request(std::move(fetch)), environment, quiet, control);
  }
  std::uint64_t bytes_used() {
    std::uint64_t bytes = 0;
    // All of them first: what one device reads, it keeps of another's memory.
    for (const engine::RunDevice& device : environment.devices) device.state->synchronize();
    for (const engine::RunDevice& device : environment.devices)
      bytes += device.state->pool().use().used;
    return bytes;
  }
};

inline void give_number(heddle_ctx& ctx, std::int64_t number) {
  ctx.set_output(0, engine::make_value(number));
}
inline std::int64_t number_of(heddle_ctx& ctx, std::uint32_t input) {
  const heddle_value* value = ctx.input(input);
  if (value == nullptr) throw engine::Error(engine::Code::invalid_argument, "the input is absent");
  return engine::get_int(*value);
}

// What the run throws, with its trail; "" when it throws nothing.
template <class F>
std::string failure_of(F&& run) {
  try {
    run();
  } catch (const engine::Error& error) {
    return error.full();
  }
  return "";
}

}  // namespace heddle::test
