// What the engine itself costs a node, beside oneTBB's flow graph in the same process.
//
//   overhead_bench [--clock] [--nodes N | --large] [REPEATS]
//
// The nodes take one INT and give one INT, and come from a plugin, through the C ABI. A chain is a
// line of them; in a fan the first node is read by half of the others, and a sink reads each of
// those. Printed are nanoseconds a node, for graphs of 100, 1,000 and 10,000 nodes, and the ratio
// of the last to the first. Every measurement is of 10,000 nodes in all: 100 different graphs of
// 100 nodes, one after another, or ten of 1,000, or one. So every size finds the processor's caches
// equally cold; one small graph run again and again would lie in them, and seem cheaper than it is.
// --large: graphs of 10,000 and 100,000 nodes, of 100,000 in all.
//   parse, bind, plan     from the text of a workflow to its plan, by step
//   first run             everything is computed
//   nothing changed       the same workflow once more: everything is in the cache
//   last leaf changed     one literal that one node and its sink depend on
//   first leaf changed    the literal that everything depends on
//   written out, expanding
//                         parse to run, of a chain in which each tenth node asks for two others
//                         when it runs, and of the same with those two in its place; and the ratio
//   facade                Engine::start(...).wait(), nothing changed: bind, plan, a thread, the run
// Figures are medians, of the processor's time (--clock: of the clock), after a warm-up. The engine
// runs such nodes on one thread, so oneTBB is given one, too. What is freed stays with the process:
// else the pages that a large graph gives back and takes again would count for its size.
//
// A tree of 10,000 nodes does not fit where one of 100 does, so times differ by what memory costs.
// Whether the work itself is linear is told by its instructions (--nodes: of one size only):
//   valgrind --tool=callgrind --collect-atstart=no
//       --toggle-collect='heddle::engine::parse_workflow*' overhead_bench --nodes 10000 1
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/graph/bind.h"
#include "engine/graph/workflow.h"
#include "engine/place/place.h"
#include "engine/plugin/devices.h"
#include "engine/plugin/host.h"
#include "engine/run/executor.h"
#include "heddle/engine.hpp"
#include "tests/bench/overhead_texts.h"

#if defined(HEDDLE_WITH_TBB)
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#endif

namespace heddle::bench {

namespace {

using engine::cat;

constexpr int kMostNodes = 100'000;  // of a graph

struct Options {
  clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
  int repeats = 15;
  std::vector<int> sizes = {100, 1'000, 10'000};  // nodes of a graph
  // In the graphs of one measurement together.
  int nodes_at_once() const { return std::max(10'000, sizes.back()); }
};

double seconds_now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Nanoseconds of each part of a measurement, over its repeats.
class Stopwatch {
 public:
  explicit Stopwatch(clockid_t clock) : clock_(clock) {}
  void time(const std::string& part, const std::function<void()>& work) {
    const double start = seconds_now(clock_);
    work();
    const double ns = 1e9 * (seconds_now(clock_) - start);
    const auto same = [&](const Part& p) { return p.name == part; };
    auto found = std::ranges::find_if(parts_, same);
    if (found == parts_.end()) found = parts_.insert(parts_.end(), {part, {}});
    found->ns.push_back(ns);
  }
  struct Part {
    std::string name;
    std::vector<double> ns;
    double median() const {
      std::vector<double> sorted = ns;
      std::ranges::nth_element(sorted, sorted.begin() + std::ptrdiff_t(sorted.size() / 2));
      return sorted[sorted.size() / 2];
    }
  };
  const std::vector<Part>& parts() const { return parts_; }

 private:
  clockid_t clock_;
  std::vector<Part> parts_;
};

// ---- the engine ----

struct Ready {
  engine::Graph graph;
  engine::Plan plan;
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), environment_(std::uint64_t{1} << 30) {
    plugins_ = engine::load_plugins({HEDDLE_CPU_PLUGIN, HEDDLE_ARITHMETIC_PLUGIN});
    for (const engine::RefusedPlugin& refused : plugins_.refused)
      throw engine::Error(engine::Code::not_found, refused.reason);
    environment_.host = engine::plugin_host();
    environment_.catalog = plugins_.catalog;
    environment_.devices = engine::open_devices(plugins_, {.names = {"cpu:0"}, .threads = 1});
    environment_.topology = engine::topology_of(environment_.devices);
    EngineOptions embedded;
    embedded.default_plugin_dir = HEDDLE_CPU_PLUGIN;
    embedded.plugin_dirs = {HEDDLE_ARITHMETIC_PLUGIN};
    embedded.devices = {"cpu:0"};
    embedded.threads = 1;
    embedded.cache_bytes = std::uint64_t{1} << 30;
    engine_ = std::make_unique<Engine>(embedded);
  }

  std::vector<Stopwatch::Part> measure(Form form, int nodes) {
    Stopwatch watch(options_.clock), warm_up(options_.clock);
    std::vector<Workflow> flows;
    for (int g = 0; g < options_.nodes_at_once() / nodes; ++g)
      flows.push_back(engine_->parse(workflow_text(form, nodes, unused(), 1)));
    for (int i = 0; i < options_.repeats + 2; ++i) {
      Stopwatch& used = i < 2 ? warm_up : watch;
      repeat(form, nodes, used);
      used.time("facade", [&] {
        for (const Workflow& flow : flows) engine_->start(flow).wait();
      });
    }
    return watch.parts();
  }

  // The same work once with all nodes in the workflow, once with some that come while it runs.
  void print_growth() {
    Stopwatch watch(options_.clock), warm_up(options_.clock);
    const int nodes = options_.nodes_at_once(), expanding = nodes / 10 - 1;
    for (int i = 0; i < options_.repeats + 2; ++i)
      for (const bool expands : {false, true}) {
        environment_.cache.clear();
        const std::string text = growing_text(nodes, expands, unused());
        (i < 2 ? warm_up : watch).time(expands ? "expanding" : "written out", [&] {
          const Ready ready =
              plan(engine::bind(engine::parse_workflow(text, "bench"), *plugins_.catalog));
          run(ready, nodes + (expands ? 0 : expanding), nodes + (expands ? 2 : 1) * expanding);
        });
      }
    const double flat = watch.parts()[0].median(), grown = watch.parts()[1].median();
    std::printf(
        "\n%d nodes, of which %d expand: %.2f ms written out, %.2f ms expanding, ratio %.2f\n",
        nodes, expanding, flat / 1e6, grown / 1e6, grown / flat);
  }

 private:
  // A number that no other literal has: each workflow's nodes are new to the cache.
  std::int64_t unused() { return unused_ += 1'000'000; }

  void repeat(Form form, int nodes, Stopwatch& watch) {
    environment_.cache.clear();
    const auto count = std::size_t(options_.nodes_at_once() / nodes);
    std::vector<std::int64_t> firsts(count);
    std::ranges::generate(firsts, [this] { return unused(); });
    const auto texts = [&](std::int64_t last) {
      std::vector<std::string> made;
      for (const std::int64_t first : firsts)
        made.push_back(workflow_text(form, nodes, first, last));
      return made;
    };
    std::vector<engine::Workflow> workflows(count);
    std::vector<engine::Bound> bound(count);
    std::vector<Ready> ready(count);
    const auto run_all = [&](int expected) {
      for (const Ready& each : ready) run(each, nodes, expected);
    };
    const auto prepare = [&](const std::vector<std::string>& all) {
      for (std::size_t g = 0; g < count; ++g)
        ready[g] = plan(engine::bind(engine::parse_workflow(all[g], "bench"), *plugins_.catalog));
    };
    const std::vector<std::string> all = texts(1);
    watch.time("parse", [&] {
      for (std::size_t g = 0; g < count; ++g)
        workflows[g] = engine::parse_workflow(all[g], "bench");
    });
    watch.time("bind", [&] {
      for (std::size_t g = 0; g < count; ++g)
        bound[g] = engine::bind(workflows[g], *plugins_.catalog);
    });
    watch.time("plan", [&] {
      for (std::size_t g = 0; g < count; ++g) ready[g] = plan(std::move(bound[g]));
    });
    watch.time("first run", [&] { run_all(nodes); });
    watch.time("nothing changed", [&] { run_all(0); });
    prepare(texts(-1));  // the numbers of a fan count from 2
    watch.time("last leaf changed", [&] { run_all(2); });
    std::ranges::generate(firsts, [this] { return unused(); });
    prepare(texts(1));
    watch.time("first leaf changed", [&] { run_all(nodes); });
  }

  Ready plan(engine::Bound bound) const {
    if (!bound.problems.empty())
      throw engine::Error(engine::Code::internal, bound.problems.front().message);
    Ready ready{std::move(bound.graph), {}};
    const engine::Inferred inferred = engine::infer(ready.graph, environment_.host);
    ready.plan = engine::make_plan(
        ready.graph,
        engine::place({ready.graph, inferred, environment_.topology, engine::Costs(), {}}),
        inferred, environment_.topology);
    return ready;
  }
  // Throws when another number of nodes was computed than this case is about.
  void run(const Ready& ready, int nodes, int expected) {
    if (std::ssize(ready.graph.nodes) != nodes)
      throw engine::Error(engine::Code::internal,
                          cat(nodes, " nodes wanted, ", ready.graph.nodes.size(), " bound"));
    engine::RunRequest request{.graph = &ready.graph, .plan = &ready.plan};
    const engine::RunResult result = engine::execute(request, environment_, observer_, control_);
    const auto computed = std::ranges::count(result.timings, false, &engine::NodeTiming::cached);
    if (computed != expected)
      throw engine::Error(engine::Code::internal, cat(computed, " nodes ran, expected ", expected));
  }

  const Options options_;
  engine::LoadedPlugins plugins_;
  engine::Environment environment_;
  engine::NullObserver observer_;
  engine::RunControl control_;
  std::unique_ptr<Engine> engine_;
  std::int64_t unused_ = 0;
};

// ---- oneTBB ----

#if defined(HEDDLE_WITH_TBB)
namespace flow = oneapi::tbb::flow;

template <class Node>
struct TbbGraph {
  flow::graph graph;
  std::deque<Node> nodes;
};

// `message` starts the first node; `add` is the work of each.
template <class Node, class Message, class Add>
void measure_tbb(const std::string& kind, Form form, int nodes, int graph_count, Stopwatch& watch,
                 Add add, Message message) {
  std::deque<TbbGraph<Node>> graphs;
  watch.time("oneTBB, " + kind + ": build", [&] {
    for (int g = 0; g < graph_count; ++g) {
      auto& [graph, all] = graphs.emplace_back();
      for (int i = 0; i < nodes; ++i) {
        if constexpr (std::is_same_v<Message, int>)
          all.emplace_back(graph, flow::serial, add);
        else
          all.emplace_back(graph, add);
        if (i == 0) continue;
        const int from = form == Form::chain || i % 2 == 0 ? i - 1 : 0;
        flow::make_edge(all[std::size_t(from)], all.back());
      }
    }
  });
  for (const char* part : {": first run", ": next run"})
    watch.time("oneTBB, " + kind + part, [&] {
      for (TbbGraph<Node>& each : graphs) {
        each.nodes.front().try_put(message);
        each.graph.wait_for_all();
      }
    });
}

std::vector<Stopwatch::Part> measure_tbb(Form form, int nodes, const Options& options) {
  const oneapi::tbb::global_control one_thread(oneapi::tbb::global_control::max_allowed_parallelism,
                                               1);
  static volatile std::int64_t sink = 0;
  Stopwatch warm_up(options.clock), watch(options.clock);
  const int graphs = options.nodes_at_once() / nodes;
  for (int i = 0; i < options.repeats + 2; ++i) {
    Stopwatch& used = i < 2 ? warm_up : watch;
    measure_tbb<flow::continue_node<flow::continue_msg>>(
        "continue_node", form, nodes, graphs, used, [](flow::continue_msg) { sink = sink + 1; },
        flow::continue_msg());
    measure_tbb<flow::function_node<int, int>>(
        "function_node", form, nodes, graphs, used, [](int value) { return value + 1; }, 1);
  }
  return watch.parts();
}
#endif

// ---- the table ----

using Columns = std::vector<std::vector<Stopwatch::Part>>;  // by size

void print(const Columns& columns, int nodes_at_once) {
  for (std::size_t part = 0; part < columns.front().size(); ++part) {
    std::printf("%-36s", columns.front()[part].name.c_str());
    const auto ns = [&](const std::vector<Stopwatch::Part>& size) {
      return size[part].median() / nodes_at_once;
    };
    for (const auto& size : columns) std::printf("%10.1f", ns(size));
    std::printf("%12.2f\n", ns(columns.back()) / ns(columns.front()));
  }
}

int run(const Options& options) {
  Bench bench(options);
  std::printf("ns a node, medians of %d, %s; each of %d nodes in graphs of the size\n",
              options.repeats,
              options.clock == CLOCK_MONOTONIC ? "on the clock" : "of the processor",
              options.nodes_at_once());
  for (const Form form : {Form::chain, Form::fan}) {
    std::printf("\n%-36s", name_of(form));
    for (const int size : options.sizes) std::printf("%10d", size);
    std::printf("%12s\n", "last : first");
    Columns ours;
    for (const int size : options.sizes) ours.push_back(bench.measure(form, size));
    print(ours, options.nodes_at_once());
#if defined(HEDDLE_WITH_TBB)
    Columns theirs;
    for (const int size : options.sizes) theirs.push_back(measure_tbb(form, size, options));
    print(theirs, options.nodes_at_once());
#endif
  }
  if (options.sizes.size() > 1) bench.print_growth();
#if !defined(HEDDLE_WITH_TBB)
  std::printf("\noneTBB was not found when this was configured (libtbb-dev): no figures beside\n");
#endif
  return 0;
}

}  // namespace

}  // namespace heddle::bench

int main(int argc, char** argv) {
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  heddle::bench::Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--clock") == 0)
      options.clock = CLOCK_MONOTONIC;
    else if (std::strcmp(argv[i], "--nodes") == 0 && i + 1 < argc)
      options.sizes = {std::clamp(std::atoi(argv[++i]), 2, heddle::bench::kMostNodes)};
    else if (std::strcmp(argv[i], "--large") == 0)
      options.sizes = {10'000, heddle::bench::kMostNodes};
    else
      options.repeats = std::max(1, std::atoi(argv[i]));
  }
  try {
    return heddle::bench::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "overhead_bench: %s\n", error.what());
    return 1;
  }
}
