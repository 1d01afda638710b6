// What planning takes, and how good it is: a workflow of 10,000 nodes and a model of 1,000 blocks
// in seconds; schedules of 60 tasks beside the bounds that none can beat (the longest path without
// any copy; all work, divided among the devices at their best).
//
//   planning_bench
#include <chrono>
#include <cstdio>
#include <numeric>

#include "engine/explain/plan_text.h"
#include "engine/graph/bind.h"
#include "engine/place/place.h"
#include "tests/support/random_tasks.h"
#include "tests/support/shape_models.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_nodes.h"

namespace {

using namespace heddle;
using engine::TaskGraph;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Half a chain, half branches that all read the first node.
engine::Graph workflow(std::size_t count, engine::Inferred& inferred) {
  engine::Graph graph;
  auto node = std::make_shared<test::TestNode>("bench.work");
  node->in("a", "TENSOR").out("TENSOR");
  const engine::NodeTypeRef type = test::type_of(node);
  for (engine::NodeIndex n = 0; n < count; ++n) {
    engine::Node made{std::to_string(n), "", type, false, {std::monostate()}, {}, {}, {}};
    if (n > 0) made.inputs[0] = engine::Source{n % 2 == 0 ? n - 1 : 0, 0};
    graph.nodes.push_back(std::move(made));
    graph.order.push_back(n);
    engine::NodeSpec spec;
    spec.flops = 1e9 * double(1 + n % 7);
    spec.outputs.resize(1);
    spec.outputs[0].tensors[""] = test::info_of(HEDDLE_F32, {1024, 1024});
    inferred.nodes.push_back(std::move(spec));
  }
  return graph;
}

void time_workflow(std::size_t devices) {
  engine::Inferred inferred;
  const engine::Graph graph = workflow(10'000, inferred);
  const engine::Topology topology = test::equal_devices(devices, 1e10, 1e-5);
  const double begin = now();
  engine::Placement placement = engine::place({graph, inferred, topology, engine::Costs(), {}});
  const double placed = now();
  engine::Plan plan = engine::make_plan(graph, std::move(placement), inferred, topology);
  engine::add_steps(graph, inferred, topology, plan);
  const double planned = now();
  const std::size_t bytes = engine::plan_text(graph, plan, topology).size();
  std::printf(
      "10,000 nodes on %zu devices: place %.3f s, plan %.3f s (%zu steps), text %.3f s (%zu "
      "bytes)\n",
      devices, placed - begin, planned - placed, plan.steps.size(), now() - planned, bytes);
}

void time_model(std::size_t devices) {
  const test::TemporaryFolder folder;
  const engine::Value model = test::chain_model(folder / "chain.safetensors", 1000, 2048, {});
  engine::Graph graph;
  auto node = std::make_shared<test::TestNode>("bench.call");
  node->out("TENSOR");
  graph.nodes.push_back({"call", "", test::type_of(node), false, {}, {}, {}, {}});
  graph.order = {0};
  engine::Inferred inferred;
  inferred.nodes.emplace_back();
  inferred.nodes[0].outputs.resize(1);
  inferred.nodes[0].calls.push_back(
      test::shape_call(model, {.batch = 2, .tokens = 1024, .steps = 20, .sets = 2}, 2048));
  engine::Topology topology = test::equal_devices(devices, 1e10, 1e-5);
  for (engine::DeviceFacts& d : topology.devices)
    d.memory_total = d.memory_free = (std::uint64_t(24) << 30) / devices;
  const double begin = now();
  engine::Placement placement = engine::place({graph, inferred, topology, engine::Costs(), {}});
  const engine::Plan plan = engine::make_plan(graph, std::move(placement), inferred, topology);
  std::printf("1,000 blocks, 2 sets, batch 2, on %zu devices: %.3f s, %zu alternatives\n", devices,
              now() - begin, plan.assignments[0].calls[0].report.alternatives.size());
}

// No schedule is shorter than the longest path at every task's best, nor than all work at its best
// over all devices.
double lower_bound(const TaskGraph& graph, std::size_t devices) {
  std::vector<double> done(graph.tasks.size(), 0);
  double path = 0, work = 0;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    double best = graph.tasks[t].options[0].seconds, begin = 0;
    for (const engine::TaskOption& o : graph.tasks[t].options) best = std::min(best, o.seconds);
    for (const engine::TaskInput& i : graph.tasks[t].inputs)
      begin = std::max(begin, done[graph.values[i.value].task]);
    done[t] = begin + best;
    path = std::max(path, done[t]);
    work += best;
  }
  return std::max(path, work / double(devices));
}

void rate_schedules(std::uint32_t devices) {
  constexpr int kGraphs = 50;
  double sum = 0, worst = 0, one = 0, seconds = 0;
  for (std::uint32_t seed = 0; seed < kGraphs; ++seed) {
    std::mt19937 random(1000 + seed);
    const engine::Prices prices = test::random_prices(random, devices);
    const TaskGraph graph = test::random_tasks(random, 60, devices);
    const double bound = lower_bound(graph, devices), begin = now();
    const double found = engine::schedule(graph, prices).seconds;
    seconds += now() - begin;
    const double alone = engine::simulate(graph, engine::rank_order(graph, prices),
                                          std::vector<std::uint32_t>(60, 0), prices);
    sum += found / bound;
    worst = std::max(worst, found / bound);
    one += alone / found;
  }
  std::printf(
      "60 tasks on %u devices: %.3f of the lower bound on average, %.3f at worst; %.2f times as "
      "fast as one device; %.4f s each\n",
      devices, sum / kGraphs, worst, one / kGraphs, seconds / kGraphs);
}

}  // namespace

int main() {
  for (const std::size_t devices : {1, 2, 4, 16}) time_workflow(devices);
  for (const std::size_t devices : {1, 2, 4, 16}) time_model(devices);
  for (const std::uint32_t devices : {2, 3, 4, 8}) rate_schedules(devices);
}
