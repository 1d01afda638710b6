// Branches of one graph on different devices: what runs at once, and what may not.
#include <boost/test/unit_test.hpp>
#include <set>
#include <thread>

#include "tests/engine/run/run_fixture.h"

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr std::uint32_t kSink = HEDDLE_NODE_SINK | HEDDLE_NODE_IMPURE;

// Waits, but not for ever, until the run of this call is told to stop.
void wait_until_cancelled(heddle_ctx& ctx) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!ctx.cancelled()) {
    if (std::chrono::steady_clock::now() > end)
      throw engine::Error(engine::Code::internal, "the run was never cancelled");
    std::this_thread::yield();
  }
  throw engine::Error(engine::Code::cancelled, "stopped");
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(device_queues, TwoDevices)

BOOST_AUTO_TEST_CASE(nodes_on_two_devices_and_on_the_host_run_at_the_same_time) {
  Meeting meeting;
  Flow flow;
  const Action meet = [&](heddle_ctx& ctx) {
    meeting.meet(3);
    give_number(ctx, 1);
  };
  flow.add("a", Place::first, {}, meet, kSink);
  flow.add("b", Place::second, {}, meet, kSink);
  flow.add("c", Place::host, {}, meet, kSink);
  BOOST_TEST(run(flow).timings.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_branch_that_becomes_ready_later_gets_its_device_at_once) {
  Meeting meeting;
  Flow flow;
  const auto one = [](heddle_ctx& ctx) { give_number(ctx, 1); };
  const auto root = flow.add("root", Place::host, {}, one);
  const Action meet = [&](heddle_ctx& ctx) {
    meeting.meet(2);
    give_number(ctx, number_of(ctx, 0) + 1);
  };
  const auto a = flow.add("a", Place::first, {{{root, 0}}}, meet);
  const auto b = flow.add("b", Place::second, {{{root, 0}}}, meet);
  const auto sum = flow.add(
      "sum", Place::second, {{{a, 0}}, {{b, 0}}},
      [](heddle_ctx& ctx) { give_number(ctx, number_of(ctx, 0) + number_of(ctx, 1)); }, kSink);
  BOOST_TEST(engine::get_int(*run(flow, {{sum, 0}}).fetched.at({sum, 0})) == 4);
}

BOOST_AUTO_TEST_CASE(a_queue_runs_one_node_at_a_time_in_the_order_of_the_graph) {
  std::array<std::atomic<int>, 2> inside{};
  std::atomic<int> most{0};
  std::mutex mutex;
  std::array<std::vector<int>, 2> started;
  Flow flow;
  for (int i = 0; i < 200; ++i) {
    const std::size_t queue = i % 2;
    flow.add(
        std::to_string(i), queue == 0 ? Place::first : Place::second, {},
        [&, queue, i](heddle_ctx& ctx) {
          const int here = ++inside[queue];
          most = std::max(most.load(), here);
          {
            const std::lock_guard lock(mutex);
            started[queue].push_back(i);
          }
          std::this_thread::yield();
          --inside[queue];
          give_number(ctx, i);
        },
        kSink);
  }
  run(flow);
  BOOST_TEST(most == 1);
  for (const std::vector<int>& order : started) {
    BOOST_TEST(order.size() == 100u);
    BOOST_TEST(std::ranges::is_sorted(order));
  }
}

BOOST_AUTO_TEST_CASE(a_run_on_one_queue_stays_on_the_thread_of_its_caller) {
  std::set<std::thread::id> threads;
  Flow flow;
  engine::NodeIndex last = 0;
  for (int i = 0; i < 1000; ++i) {
    const Action add = [&, i](heddle_ctx& ctx) {
      threads.insert(std::this_thread::get_id());
      give_number(ctx, i == 0 ? 0 : number_of(ctx, 0) + 1);
    };
    last = i == 0 ? flow.add("0", Place::first, {}, add)
                  : flow.add(std::to_string(i), Place::first, {{{last, 0}}}, add);
  }
  const engine::RunResult result = run(flow, {{last, 0}});
  BOOST_TEST(engine::get_int(*result.fetched.at({last, 0})) == 999);
  BOOST_TEST((threads == std::set{std::this_thread::get_id()}));
}

BOOST_AUTO_TEST_CASE(a_failure_on_one_queue_stops_the_other_and_is_what_the_run_throws) {
  for (const Place failing : {Place::first, Place::second}) {
    Meeting meeting;
    std::atomic<int> running{0};
    Flow flow;
    flow.add(
        "good", failing == Place::first ? Place::second : Place::first, {},
        [&](heddle_ctx& ctx) {
          ++running;
          meeting.meet(2);
          try {
            wait_until_cancelled(ctx);
          } catch (...) {
            --running;
            throw;
          }
        },
        kSink);
    flow.add(
        "bad", failing, {},
        [&](heddle_ctx&) {
          meeting.meet(2);
          throw engine::Error(engine::Code::io, "the disk is on fire");
        },
        kSink);
    const std::string failure = failure_of([&] { run(flow); });
    BOOST_TEST(failure == "node 'bad' (test.action): the disk is on fire");
    BOOST_TEST(running == 0);
  }
}

BOOST_AUTO_TEST_CASE(cancelling_stops_all_queues_and_starts_no_further_node) {
  Meeting meeting;
  std::atomic<int> later{0};
  Flow flow;
  for (const auto& [id, place] : {std::pair("a", Place::first), std::pair("b", Place::second)}) {
    const auto blocked = flow.add(id, place, {}, [&](heddle_ctx& ctx) {
      meeting.arrive();
      try {
        wait_until_cancelled(ctx);
      } catch (const engine::Error&) {
        give_number(ctx, 1);  // ends well all the same
      }
    });
    flow.add(
        std::string(id) + " later", place, {{{blocked, 0}}},
        [&](heddle_ctx& ctx) {
          ++later;
          give_number(ctx, 2);
        },
        kSink);
  }
  engine::RunControl control;
  std::jthread canceller([&] {
    meeting.wait_for(2);
    control.cancel();
  });
  const std::string failure =
      failure_of([&] { engine::execute(flow.request(), environment, quiet, control); });
  BOOST_TEST(failure == "cancelled");
  BOOST_TEST(later == 0);
}

BOOST_AUTO_TEST_CASE(lazy_inputs_are_computed_on_their_own_queues_when_they_are_wanted) {
  Flow flow;
  std::atomic<int> computed{0};
  const auto number = [&](std::int64_t n) {
    return [&computed, n](heddle_ctx& ctx) {
      ++computed;
      give_number(ctx, n);
    };
  };
  const auto early = flow.add("early", Place::first, {}, number(1));
  flow.add("reads early", Place::first, {{{early, 0}}}, number(0), kSink);
  // They are asked for after every other reader of `early` is done.
  const Action add_ten = [&](heddle_ctx& ctx) {
    ++computed;
    give_number(ctx, number_of(ctx, 0) + 10);
  };
  const auto wanted = flow.add("wanted", Place::host, {{{early, 0}}}, add_ten);
  const auto unwanted = flow.add("unwanted", Place::host, {{{early, 0}}}, add_ten);
  const auto second = flow.add("second", Place::first, {{{early, 0}}}, add_ten);
  const auto choose = flow.add(
      "choose", Place::second,
      {{{wanted, 0}, HEDDLE_PORT_LAZY},
       {{unwanted, 0}, HEDDLE_PORT_LAZY},
       {{second, 0}, HEDDLE_PORT_LAZY}},
      [](heddle_ctx& ctx) {
        BOOST_REQUIRE(ctx.input(1) == nullptr);
        give_number(ctx, number_of(ctx, 0) + number_of(ctx, 2));
      },
      kSink,
      [](heddle_ctx& ctx) {
        ctx.want("a");
        if (ctx.input(0) != nullptr) ctx.want("c");  // it asks again once it knows more
      });
  BOOST_TEST(engine::get_int(*run(flow, {{choose, 0}}).fetched.at({choose, 0})) == 22);
  BOOST_TEST(computed == 4);
}

BOOST_AUTO_TEST_CASE(deferred_nodes_of_two_queues_complete_in_any_order) {
  Flow flow;
  std::vector<std::jthread> workers;
  std::mutex mutex;
  Meeting others;
  std::vector<engine::NodeIndex> deferred;
  for (int i = 0; i < 8; ++i) {
    deferred.push_back(flow.add(std::to_string(i), i % 2 == 0 ? Place::first : Place::second, {},
                                [&, i](heddle_ctx& ctx) {
                                  heddle_completion* const completion = ctx.defer();
                                  const std::lock_guard lock(mutex);
                                  workers.emplace_back([&, i, completion, raw = &ctx] {
                                    others.meet(8);  // so none of them holds its queue
                                    give_number(*raw, i);
                                    completion->finish(nullptr);
                                  });
                                }));
  }
  std::vector<TestInput> inputs;
  for (const engine::NodeIndex n : deferred) inputs.push_back({{n, 0}});
  const auto sum = flow.add(
      "sum", Place::host, inputs,
      [](heddle_ctx& ctx) {
        std::int64_t total = 0;
        for (std::uint32_t i = 0; i < 8; ++i) total += number_of(ctx, i);
        give_number(ctx, total);
      },
      kSink);
  BOOST_TEST(engine::get_int(*run(flow, {{sum, 0}}).fetched.at({sum, 0})) == 28);
}

BOOST_AUTO_TEST_CASE(files_are_listed_in_the_order_of_the_graph) {
  Meeting second_is_done;
  Flow flow;
  flow.add(
      "slow", Place::first, {},
      [&](heddle_ctx& ctx) {
        second_is_done.wait_for(1);
        ctx.wrote("first.png", "");
        give_number(ctx, 1);
      },
      kSink);
  flow.add(
      "fast", Place::second, {},
      [&](heddle_ctx& ctx) {
        ctx.wrote("second.png", "");
        ctx.wrote("third.png", "");
        give_number(ctx, 1);
      },
      kSink);
  flow.add(
      "after", Place::second, {},
      [&](heddle_ctx& ctx) {
        second_is_done.arrive();
        give_number(ctx, 1);
      },
      kSink);
  const engine::RunResult result = run(flow);
  BOOST_TEST(result.files == (std::vector<std::string>{"first.png", "second.png", "third.png"}),
             boost::test_tools::per_element());
  BOOST_TEST(result.timings.front().node == 1u);
}

BOOST_AUTO_TEST_CASE(what_a_node_shows_is_joined_and_given_again_when_it_is_cached) {
  struct Listener : engine::Observer {
    std::vector<std::string> heard, warnings;
    void node_shows(const engine::Node& n, std::string_view ui) override {
      heard.push_back(n.id + " " + std::string(ui));
    }
    void node_done(const engine::Node& n, double) override { heard.push_back(n.id + " done"); }
    void node_cached(const engine::Node& n) override { heard.push_back(n.id + " cached"); }
    void file_written(const engine::Node&, std::string_view path) override {
      heard.emplace_back(path);
    }
    void warning(const engine::Node*, std::string_view message) override {
      warnings.emplace_back(message);
    }
  };
  Flow flow;
  const engine::NodeIndex shows = flow.add(
      "shows", Place::host, {},
      [](heddle_ctx& ctx) {
        ctx.wrote("a.png", R"({"images": [{"filename": "a.png"}], "text": ["1"]})");
        ctx.wrote("", R"({"images": [{"filename": "b.png"}]})");
        ctx.wrote("", R"({"images": "none"})");
        give_number(ctx, 3);
      },
      HEDDLE_NODE_SINK);
  const std::string ui = R"({"images":[{"filename":"a.png"},{"filename":"b.png"}],"text":["1"]})";
  for (const bool is_cached : {false, true}) {
    Listener listener;
    engine::RunControl control;
    const engine::RunResult result =
        engine::execute(flow.request({{shows, 0}}), environment, listener, control);
    const std::vector<std::string> expected =
        is_cached ? std::vector<std::string>{"shows " + ui, "shows cached"}
                  : std::vector<std::string>{"a.png", "shows " + ui, "shows done"};
    BOOST_TEST(listener.heard == expected, boost::test_tools::per_element());
    BOOST_TEST(listener.warnings.size() == (is_cached ? 0u : 1u));
    BOOST_TEST(result.ui.at(shows) == ui);
    BOOST_TEST(engine::get_int(*result.fetched.at({shows, 0})) == 3);
    BOOST_TEST(result.files.size() == (is_cached ? 0u : 1u));
  }
}

BOOST_AUTO_TEST_CASE(an_observer_is_told_one_thing_at_a_time) {
  struct Listener : engine::Observer {
    std::atomic<int> inside{0}, most{0}, calls{0};
    void hear() {
      most = std::max(most.load(), ++inside);
      ++calls;
      std::this_thread::yield();
      --inside;
    }
    void node_started(const engine::Node&, std::string_view) override { hear(); }
    void node_progress(const engine::Node&, double, std::string_view) override { hear(); }
    void node_done(const engine::Node&, double) override { hear(); }
  } listener;
  Flow flow;
  for (int i = 0; i < 60; ++i)
    flow.add(
        std::to_string(i), std::array{Place::first, Place::second, Place::host}[i % 3], {},
        [](heddle_ctx& ctx) {
          for (int step = 0; step < 10; ++step) ctx.progress(0.1 * step, "");
          give_number(ctx, 1);
        },
        kSink);
  engine::RunControl control;
  engine::execute(flow.request(), environment, listener, control);
  BOOST_TEST(listener.most == 1);
  BOOST_TEST(listener.calls == 60 * 12);
}

BOOST_AUTO_TEST_SUITE_END()
