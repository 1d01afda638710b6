// A node that several runs need at the same time is computed by one of them.
#include <boost/test/unit_test.hpp>

#include "tests/engine/run/shared_runs.h"

using namespace heddle;
using namespace heddle::test;
using engine::NodeIndex;

namespace {

struct WithoutCache : SharedRuns {
  WithoutCache() : SharedRuns(0) {}
};

// "x" is shared; what it does is for the test to say. "end" adds 1 to it in each run.
struct OneShared : SharedRuns {
  std::atomic<int> begun{0};
  Action work = [](heddle_ctx& ctx) { give_number(ctx, 41); };
  Flow flow;
  const NodeIndex x = add(flow, "x", 1, [this](heddle_ctx& ctx) {
    ++begun;
    work(ctx);
  });
  const NodeIndex end = flow.add("end", Place::host, {{{x, 0}}},
                                 [](heddle_ctx& ctx) { give_number(ctx, number_of(ctx, 0) + 1); });

  std::vector<std::unique_ptr<OneRun>> start(int count) {
    std::vector<std::unique_ptr<OneRun>> runs;
    for (int i = 0; i < count; ++i) runs.push_back(std::make_unique<OneRun>(*this, flow, end));
    return runs;
  }
  // The first call of x does this when `count` others wait for it; the next ones give 41 at once.
  void first_does(std::size_t count, Action then) {
    work = [this, count, then](heddle_ctx& ctx) {
      if (begun > 1) return give_number(ctx, 41);
      await_waiting(count);
      then(ctx);
    };
  }
};

int count_of(const std::vector<std::unique_ptr<OneRun>>& runs, const std::string& part) {
  int count = 0;
  for (const auto& run : runs) count += run->failure().find(part) != std::string::npos;
  return count;
}

void wait_for_all(const std::vector<std::unique_ptr<OneRun>>& runs) {
  for (const auto& run : runs) run->wait();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shared_nodes)

BOOST_FIXTURE_TEST_CASE(eight_runs_compute_a_node_that_they_share_once, OneShared) {
  first_does(7, [](heddle_ctx& ctx) { give_number(ctx, 41); });
  const auto runs = start(8);
  wait_for_all(runs);
  int cached = 0;
  for (const auto& run : runs) {
    BOOST_TEST(run->value() == 42, run->failure());
    cached += run->cached();
  }
  BOOST_TEST(begun == 1);
  BOOST_TEST(cached == 7);
  BOOST_TEST(environment.flights.waiting() == 0u);
}

// What nobody keeps goes to those who wait, and to nobody else.
BOOST_FIXTURE_TEST_CASE(without_a_cache_those_who_wait_get_it, WithoutCache) {
  std::atomic<int> begun{0};
  Flow flow;
  const NodeIndex x = add(flow, "x", 1, [&](heddle_ctx& ctx) {
    if (++begun == 1) await_waiting(3);
    give_number(ctx, 41);
  });
  std::vector<std::unique_ptr<OneRun>> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(std::make_unique<OneRun>(*this, flow, x));
  for (const auto& run : runs) {
    run->wait();
    BOOST_TEST(run->value() == 41, run->failure());
  }
  BOOST_TEST(begun == 1);
  OneRun later(*this, flow, x);
  later.wait();
  BOOST_TEST(later.value() == 41);
  BOOST_TEST(begun == 2);
}

// It had begun before the node was made, and comes to it when it is no longer being computed.
BOOST_FIXTURE_TEST_CASE(what_was_made_since_a_run_began_is_not_made_again, OneShared) {
  Flow slow;
  Meeting begins, may_go_on;
  const NodeIndex before = slow.add("before", Place::host, {}, [&](heddle_ctx& ctx) {
    begins.arrive();
    may_go_on.wait_for(1);
    give_number(ctx, 0);
  });
  const NodeIndex same = add(slow, "same", 1, [&](heddle_ctx&) { ++begun; });
  const NodeIndex sum =
      slow.add("sum", Place::host, {{{before, 0}}, {{same, 0}}},
               [](heddle_ctx& ctx) { give_number(ctx, number_of(ctx, 0) + number_of(ctx, 1)); });
  OneRun late(*this, slow, sum);
  begins.wait_for(1);
  OneRun maker(*this, flow, end);
  maker.wait();
  may_go_on.arrive();
  late.wait();
  BOOST_TEST(late.value() == 41, late.failure());
  BOOST_TEST(begun == 1);
}

// One queue, and so one thread: the other node runs while the run waits for x, which ends after it.
BOOST_FIXTURE_TEST_CASE(a_run_that_waits_does_what_else_it_can, OneShared) {
  Meeting other_done;
  first_does(1, [&](heddle_ctx& ctx) {
    other_done.wait_for(1);
    give_number(ctx, 41);
  });
  OneRun computes(*this, flow, end);
  while (begun == 0) std::this_thread::yield();
  Flow two;
  const NodeIndex same = add(two, "same", 1, [&](heddle_ctx&) { ++begun; });
  const NodeIndex other = two.add("other", Place::host, {}, [&](heddle_ctx& ctx) {
    other_done.arrive();
    give_number(ctx, 1);
  });
  const NodeIndex sum =
      two.add("sum", Place::host, {{{same, 0}}, {{other, 0}}},
              [](heddle_ctx& ctx) { give_number(ctx, number_of(ctx, 0) + number_of(ctx, 1)); });
  OneRun waits(*this, two, sum);
  waits.wait();
  computes.wait();
  BOOST_TEST(waits.value() == 42, waits.failure());
  BOOST_TEST(begun == 1);
}

BOOST_FIXTURE_TEST_CASE(one_who_waits_takes_over_from_a_run_that_is_cancelled, OneShared) {
  first_does(3, [](heddle_ctx& ctx) {
    while (!ctx.cancelled()) std::this_thread::yield();
    throw engine::Error(engine::Code::cancelled, "cancelled");
  });
  OneRun first(*this, flow, end);
  while (begun == 0) std::this_thread::yield();
  const auto others = start(3);
  await_waiting(3);
  first.control.cancel();
  first.wait();
  wait_for_all(others);
  BOOST_TEST(first.failure() == "node 'x' (test.action): cancelled");
  for (const auto& run : others) BOOST_TEST(run->value() == 42, run->failure());
  BOOST_TEST(begun == 2);
}

// A node may end early when it hears that it is cancelled: what it has by then is nobody's.
BOOST_FIXTURE_TEST_CASE(what_a_cancelled_node_has_half_done_is_neither_shared_nor_kept, OneShared) {
  first_does(1, [](heddle_ctx& ctx) {
    while (!ctx.cancelled()) std::this_thread::yield();
    give_number(ctx, 7);
  });
  OneRun first(*this, flow, end);
  while (begun == 0) std::this_thread::yield();
  OneRun second(*this, flow, end);
  await_waiting(1);
  first.control.cancel();
  first.wait();
  second.wait();
  BOOST_TEST(first.failure().find("cancelled") != std::string::npos);
  BOOST_TEST(second.value() == 42, second.failure());
  OneRun third(*this, flow, end);
  third.wait();
  BOOST_TEST(third.value() == 42, third.failure());
  BOOST_TEST(begun == 2);
}

BOOST_FIXTURE_TEST_CASE(a_run_that_waits_ends_at_once_when_it_is_cancelled, OneShared) {
  Meeting may_end;
  first_does(0, [&](heddle_ctx& ctx) {
    may_end.wait_for(1);
    give_number(ctx, 41);
  });
  OneRun first(*this, flow, end);
  while (begun == 0) std::this_thread::yield();
  OneRun second(*this, flow, end);
  await_waiting(1);
  second.control.cancel();
  second.wait();  // the first goes on all the while
  BOOST_TEST(second.failure() == "cancelled");
  BOOST_TEST(environment.flights.waiting() == 0u);
  may_end.arrive();
  first.wait();
  BOOST_TEST(first.value() == 42, first.failure());
}

BOOST_FIXTURE_TEST_CASE(an_error_goes_to_all_who_wait_and_is_not_kept, OneShared) {
  first_does(3, [](heddle_ctx&) {
    throw engine::Error(engine::Code::invalid_argument, "it is too small. Give more");
  });
  const auto runs = start(4);
  wait_for_all(runs);
  BOOST_TEST(begun == 1);
  BOOST_TEST(count_of(runs, "it is too small. Give more") == 4);
  BOOST_TEST(count_of(runs,
                      "node 'x' (test.action) / node 'x' (test.action) of another run, which "
                      "computed it for this one: it is") == 3);
  OneRun later(*this, flow, end);
  later.wait();
  BOOST_TEST(later.value() == 42, later.failure());
  BOOST_TEST(begun == 2);
}

// What has no room on one device may have it on another: who is there computes, for all that still
// wait.
BOOST_FIXTURE_TEST_CASE(a_lack_of_memory_concerns_those_on_the_same_device, SharedRuns) {
  std::atomic<int> begun{0};
  const auto work = [&](heddle_ctx& ctx) {
    if (++begun == 1) {
      await_waiting(2);
      throw engine::Error(engine::Code::out_of_memory, "no room");
    }
    give_number(ctx, 41);
  };
  Flow first, second;
  const NodeIndex x = add(first, "first", 1, work, {}, Place::first);
  const NodeIndex y = add(second, "second", 1, work, {}, Place::second);
  OneRun fails(*this, first, x);
  while (begun == 0) std::this_thread::yield();
  OneRun same(*this, first, x), elsewhere(*this, second, y);
  for (OneRun* run : {&fails, &same, &elsewhere}) run->wait();
  BOOST_TEST(fails.failure().find("no room") != std::string::npos);
  BOOST_TEST(same.failure().find("no room") != std::string::npos);
  BOOST_TEST(elsewhere.value() == 41, elsewhere.failure());
  BOOST_TEST(begun == 2);
}

// Each of two runs computes what the other one needs next.
BOOST_FIXTURE_TEST_CASE(two_runs_in_crossed_orders_wait_for_each_other_in_turn, SharedRuns) {
  std::atomic<int> x_begun{0}, y_begun{0};
  Meeting both;
  const auto x_work = [&](heddle_ctx& ctx) {
    ++x_begun;
    both.meet(2);
    give_number(ctx, 1);
  };
  const auto y_work = [&](heddle_ctx& ctx) {
    ++y_begun;
    both.meet(2);
    await_waiting(1);  // the other run has done with x, and waits for this
    give_number(ctx, 2);
  };
  const auto sum = [](heddle_ctx& ctx) { give_number(ctx, number_of(ctx, 0) + number_of(ctx, 1)); };
  Flow xy, yx;
  const NodeIndex x1 = add(xy, "x1", 1, x_work), y1 = add(xy, "y1", 2, y_work);
  const NodeIndex sum1 = xy.add("sum1", Place::host, {{{x1, 0}}, {{y1, 0}}}, sum);
  const NodeIndex y2 = add(yx, "y2", 2, y_work), x2 = add(yx, "x2", 1, x_work);
  const NodeIndex sum2 = yx.add("sum2", Place::host, {{{x2, 0}}, {{y2, 0}}}, sum);
  OneRun first(*this, xy, sum1), second(*this, yx, sum2);
  first.wait();
  second.wait();
  BOOST_TEST(first.value() == 3, first.failure());
  BOOST_TEST(second.value() == 3, second.failure());
  BOOST_TEST(x_begun == 1);
  BOOST_TEST(y_begun == 1);
}

// Their own, as if the run were alone.
BOOST_FIXTURE_TEST_CASE(two_nodes_of_a_run_that_are_the_same_are_both_computed, SharedRuns) {
  std::atomic<int> begun{0};
  const auto work = [&](heddle_ctx& ctx) {
    ++begun;
    give_number(ctx, 1);
  };
  Flow flow;
  const NodeIndex a = add(flow, "a", 1, work), b = add(flow, "b", 1, work);
  const NodeIndex sum = flow.add("sum", Place::host, {{{a, 0}}, {{b, 0}}}, [](heddle_ctx& ctx) {
    give_number(ctx, number_of(ctx, 0) + number_of(ctx, 1));
  });
  OneRun run(*this, flow, sum);
  run.wait();
  BOOST_TEST(run.value() == 2, run.failure());
  BOOST_TEST(begun == 2);
}

BOOST_FIXTURE_TEST_CASE(what_is_never_cached_is_computed_by_each, SharedRuns) {
  Meeting both;
  Flow flow;
  const NodeIndex x = flow.add("x", Place::host, {}, [&](heddle_ctx& ctx) {
    both.meet(2);
    give_number(ctx, 1);
  });
  OneRun first(*this, flow, x), second(*this, flow, x);
  first.wait();
  second.wait();
  BOOST_TEST(first.value() == 1, first.failure());
  BOOST_TEST(second.value() == 1, second.failure());
}

BOOST_AUTO_TEST_SUITE_END()
