// Nodes that stand still are waited for by nobody: those of a paused run, those that wait for their
// turn to write, and those that wait for lazy inputs.
#include <boost/test/unit_test.hpp>
#include <random>

#include "tests/engine/run/shared_runs.h"

using namespace heddle;
using namespace heddle::test;
using engine::NodeIndex;

BOOST_FIXTURE_TEST_SUITE(shared_waits, SharedRuns)

// A deferred node whose run is paused before it completes.
BOOST_AUTO_TEST_CASE(what_a_paused_run_has_begun_another_computes_for_itself) {
  std::atomic<int> begun{0};
  Meeting may_complete;
  std::jthread completes;
  engine::RunControl* first_control = nullptr;
  Flow flow, other;
  const auto x_work = [&](heddle_ctx& ctx) {
    if (++begun > 1) return give_number(ctx, 41);
    heddle_completion* const completion = ctx.defer();
    completes = std::jthread([&ctx, &may_complete, completion] {
      may_complete.wait_for(1);
      give_number(ctx, 41);
      completion->finish(nullptr);
    });
  };
  const NodeIndex x = add(flow, "x", 1, x_work);
  const NodeIndex pauses = flow.add("pauses", Place::host, {}, [&](heddle_ctx& ctx) {
    await_waiting(1);
    first_control->pause();
    give_number(ctx, 1);
  });
  const NodeIndex sum =
      flow.add("sum", Place::host, {{{x, 0}}, {{pauses, 0}}},
               [](heddle_ctx& ctx) { give_number(ctx, number_of(ctx, 0) + number_of(ctx, 1)); });
  const NodeIndex same = add(other, "same", 1, x_work);
  engine::RunControl control;
  first_control = &control;
  std::int64_t got = 0;
  std::jthread first([&] {
    got = engine::get_int(*engine::execute(flow.request({{sum, 0}}), environment, quiet, control)
                               .fetched.at({sum, 0}));
  });
  while (begun == 0) std::this_thread::yield();
  OneRun second(*this, other, same);
  second.wait();  // while the first stands still
  BOOST_TEST(second.value() == 41, second.failure());
  BOOST_TEST(begun == 2);
  may_complete.arrive();
  control.resume();
  first.join();
  BOOST_TEST(got == 42);
}

// The second of two runs is at a node that writes before its turn has come: the first one, for
// which it waits, writes by itself.
BOOST_AUTO_TEST_CASE(what_waits_for_its_turn_to_write_keeps_nobody_waiting) {
  environment.folders.output = [](std::string_view) { return std::string("here"); };
  std::atomic<int> begun{0};
  Flow flow;
  const NodeIndex x = add(flow, "x", 1, [&](heddle_ctx& ctx) {
    ++begun;
    ctx.output_folder("output");
    give_number(ctx, 41);
  });
  engine::RunControl control;
  control.hold_writing();
  std::int64_t got = 0;
  std::jthread late([&] {
    got = engine::get_int(
        *engine::execute(flow.request({{x, 0}}), environment, quiet, control).fetched.at({x, 0}));
  });
  while (begun == 0) std::this_thread::yield();
  OneRun first(*this, flow, x);
  first.wait();
  BOOST_TEST(first.value() == 41, first.failure());
  control.allow_writing();
  late.join();
  BOOST_TEST(got == 41);
  BOOST_TEST(begun == 2);
}

// Each of two nodes asks for its input when it runs, which the other run has begun to compute.
BOOST_AUTO_TEST_CASE(what_waits_for_lazy_inputs_keeps_nobody_waiting) {
  std::atomic<int> begun{0}, asked{0};
  Flow flow;
  const NodeIndex input = add(flow, "input", 1, [&](heddle_ctx& ctx) {
    ++begun;
    give_number(ctx, 41);
  });
  const NodeIndex lazy = flow.add(
      "lazy", Place::host, {{{input, 0}, HEDDLE_PORT_LAZY}},
      [&](heddle_ctx& ctx) {
        ++begun;
        give_number(ctx, number_of(ctx, 0) + 1);
      },
      0,
      [&](heddle_ctx& ctx) {
        ++asked;
        ctx.want("a");
      });
  std::vector<std::unique_ptr<OneRun>> runs;
  for (int i = 0; i < 6; ++i) runs.push_back(std::make_unique<OneRun>(*this, flow, lazy));
  for (const auto& run : runs) {
    run->wait();
    BOOST_TEST(run->value() == 42, run->failure());
  }
  BOOST_TEST(begun == 2);
  BOOST_TEST(asked >= 1);
}

namespace {

// Graphs over one set of nodes, of which every run takes a part, in an order of its own.
struct RandomRuns {
  static constexpr int kNodes = 12, kRuns = 8;
  SharedRuns& runs;
  std::mt19937 random;
  std::vector<std::vector<int>> inputs = std::vector<std::vector<int>>(kNodes);
  std::vector<std::int64_t> value = std::vector<std::int64_t>(kNodes, 1);
  int failing = -1;  // this node does
  std::array<std::atomic<int>, kNodes> made = {};

  RandomRuns(SharedRuns& all, unsigned seed) : runs(all), random(seed) {
    for (int i = 1; i < kNodes; ++i)
      for (int k = int(random() % 3); k > 0; --k) inputs[i].push_back(int(random()) & 0xffff);
    for (int i = 0; i < kNodes; ++i)
      for (int& input : inputs[i]) {
        input %= i;
        value[i] += value[input] * 3;
      }
  }

  std::vector<bool> needed_by(int sink) const {
    std::vector<bool> needed(kNodes, false);
    needed[sink] = true;
    for (int i = sink; i >= 0; --i)
      for (const int input : inputs[i]) needed[input] = needed[input] || needed[i];
    return needed;
  }

  Action work(int i) {
    return [this, i, spins = random() % 8, defers = random() % 8 == 0](heddle_ctx& ctx) {
      std::int64_t sum = 1;
      for (std::uint32_t k = 0; k < inputs[i].size(); ++k) sum += number_of(ctx, k) * 3;
      for (unsigned s = 0; s < spins; ++s) std::this_thread::yield();
      if (i == failing) throw engine::Error(engine::Code::invalid_argument, "this node fails");
      const auto give = [this, i, sum, &ctx] {
        give_number(ctx, sum);
        ++made[i];
      };
      if (!defers) return give();
      heddle_completion* const completion = ctx.defer();
      std::thread([give, completion] {
        give();
        completion->finish(nullptr);
      }).detach();
    };
  }

  // The nodes that the sink needs, in any order that serves.
  NodeIndex add(Flow& flow, int run, int sink) {
    const std::vector<bool> needed = needed_by(sink);
    std::vector<NodeIndex> at(kNodes, engine::kGraphInputs);
    for (;;) {
      std::vector<int> ready;
      for (int i = 0; i <= sink; ++i)
        if (needed[i] && at[i] == engine::kGraphInputs &&
            std::ranges::all_of(inputs[i], [&](int k) { return at[k] != engine::kGraphInputs; }))
          ready.push_back(i);
      if (ready.empty()) return at[sink];
      const int i = ready[random() % ready.size()];
      std::vector<TestInput> links;
      for (const int input : inputs[i]) links.push_back({{at[input], 0}});
      // Both devices are of one class: which of them it is makes no difference to the key.
      const Place place = i % 3 == 0          ? Place::host
                          : random() % 2 == 0 ? Place::first
                                              : Place::second;
      at[i] = SharedRuns::add(flow, std::to_string(run) + "." + std::to_string(i), i, work(i),
                              links, place);
    }
  }
};

}  // namespace

// Runs that come and go, of which some are cancelled and some fail: what is finished is finished
// once, and every other run gets what it would get alone.
BOOST_AUTO_TEST_CASE(whatever_runs_share_and_however_they_end_nothing_is_made_twice) {
  for (unsigned seed = 0; seed < 90; ++seed) {
    environment.cache.clear();
    RandomRuns graph(*this, seed);
    const bool cancels = seed % 3 == 1;
    if (seed % 3 == 2) graph.failing = int(graph.random() % RandomRuns::kNodes);
    std::vector<Flow> flows(RandomRuns::kRuns);
    std::vector<int> sinks;
    std::vector<NodeIndex> ends;
    std::vector<std::unique_ptr<OneRun>> all;
    std::vector<bool> needed(RandomRuns::kNodes, false);
    for (int r = 0; r < RandomRuns::kRuns; ++r) {
      sinks.push_back(RandomRuns::kNodes - 1 - int(graph.random() % 4));
      ends.push_back(graph.add(flows[r], r, sinks[r]));
      const std::vector<bool> of_run = graph.needed_by(sinks[r]);
      for (int i = 0; i < RandomRuns::kNodes; ++i) needed[i] = needed[i] || of_run[i];
    }
    for (int r = 0; r < RandomRuns::kRuns; ++r)
      all.push_back(std::make_unique<OneRun>(*this, flows[r], ends[r]));
    std::vector<bool> is_cancelled(RandomRuns::kRuns, false);
    for (int r = 0; cancels && r < RandomRuns::kRuns; ++r)
      if (graph.random() % 2 == 0) {
        for (unsigned s = graph.random() % 24; s > 0; --s) std::this_thread::yield();
        all[r]->control.cancel();
        is_cancelled[r] = true;
      }
    BOOST_TEST_CONTEXT("seed " << seed) {
      for (int r = 0; r < RandomRuns::kRuns; ++r) {
        all[r]->wait();
        const bool fails = graph.failing >= 0 && graph.needed_by(sinks[r])[graph.failing];
        if (fails)
          BOOST_TEST(all[r]->failure().find("this node fails") != std::string::npos);
        else if (!is_cancelled[r] || all[r]->failure().empty())
          BOOST_TEST(all[r]->value() == graph.value[sinks[r]], all[r]->failure());
        else
          BOOST_TEST(all[r]->failure().find("cancelled") != std::string::npos);
      }
      // A run that ends early lets go of what it has deferred.
      for (int i = 0; i < RandomRuns::kNodes && !cancels && graph.failing < 0; ++i)
        BOOST_TEST(graph.made[i] == (needed[i] ? 1 : 0));
      BOOST_TEST(environment.flights.waiting() == 0u);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
