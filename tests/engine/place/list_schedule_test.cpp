// Tasks over devices: against every possible choice, and against what no schedule can beat.
#include "engine/place/list_schedule.h"

#include <boost/test/unit_test.hpp>
#include <random>

#include "tests/support/random_tasks.h"

using namespace heddle::engine;
using namespace heddle::test;

namespace {

// The best of all choices of options, in the order that schedule() uses.
double exhaustive(const TaskGraph& graph, const Prices& prices) {
  const std::vector<std::uint32_t> order = rank_order(graph, prices);
  std::vector<std::uint32_t> options(graph.tasks.size(), 0);
  double best = simulate(graph, order, options, prices);
  for (;;) {
    std::size_t t = 0;
    while (t < options.size() && ++options[t] == graph.tasks[t].options.size()) options[t++] = 0;
    if (t == options.size()) return best;
    best = std::min(best, simulate(graph, order, options, prices));
  }
}

Task on_any(std::uint32_t devices, double seconds, std::vector<TaskInput> inputs = {}) {
  Task task;
  for (std::uint32_t d = 0; d < devices; ++d) task.options.push_back({d, {d}, seconds, {}});
  task.inputs = std::move(inputs);
  return task;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(schedule_of_tasks)

BOOST_AUTO_TEST_CASE(is_near_the_best_of_all_choices, *boost::unit_test::label("long")) {
  double sum = 0;
  int cases = 0;
  for (std::uint32_t seed = 0; seed < 240; ++seed) {
    std::mt19937 random(seed);
    const Prices prices = random_prices(random, 3);
    const TaskGraph graph = random_tasks(random, 6 + seed % 4, 3);
    const double best = exhaustive(graph, prices), found = schedule(graph, prices).seconds;
    BOOST_TEST_CONTEXT("seed " << seed << ", " << graph.tasks.size() << " tasks") {
      BOOST_TEST(found >= best * (1 - 1e-12));
      BOOST_TEST(found <= 1.10 * best);
    }
    sum += found / best;
    ++cases;
  }
  BOOST_TEST_MESSAGE("on average " << sum / cases << " of the best");
  BOOST_TEST(sum / cases <= 1.03);
}

BOOST_AUTO_TEST_CASE(says_the_time_that_its_own_choice_takes) {
  std::mt19937 random(5);
  const Prices prices = random_prices(random, 4);
  const TaskGraph graph = random_tasks(random, 60, 4);
  const TaskSchedule found = schedule(graph, prices);
  BOOST_TEST(found.seconds == simulate(graph, found.order, found.options, prices));
}

BOOST_AUTO_TEST_CASE(the_order_is_topological) {
  std::mt19937 random(6);
  const Prices prices = random_prices(random, 4);
  const TaskGraph graph = random_tasks(random, 200, 4);
  std::vector<std::size_t> at(graph.tasks.size());
  const std::vector<std::uint32_t> order = rank_order(graph, prices);
  for (std::size_t i = 0; i < order.size(); ++i) at[order[i]] = i;
  for (std::uint32_t t = 0; t < graph.tasks.size(); ++t)
    for (const TaskInput& input : graph.tasks[t].inputs)
      BOOST_TEST(at[graph.values[input.value].task] < at[t]);
}

BOOST_AUTO_TEST_CASE(a_value_is_brought_once_for_all_its_readers) {
  Topology topology = equal_devices(2, 1e9, 0.5);
  const Prices prices(topology, {});
  TaskGraph graph;
  graph.values = {{0, 0, 0xffffffff}};
  graph.tasks = {on_any(1, 1)};
  for (int i = 0; i < 3; ++i) {
    Task reader = on_any(2, 1, {{0, false, false}});
    reader.options.erase(reader.options.begin());
    graph.tasks.push_back(reader);
  }
  // One second, half a second for one copy, three seconds.
  BOOST_TEST(simulate(graph, {0, 1, 2, 3}, {0, 0, 0, 0}, prices) == 4.5);
}

BOOST_AUTO_TEST_CASE(copies_overlap_computing_and_share_a_link) {
  const Prices prices(equal_devices(2, 1e9, 1), {});
  TaskGraph graph;
  graph.values = {{0, 1'000'000'000, 0xffffffff}, {1, 1'000'000'000, 0xffffffff}};
  graph.tasks = {on_any(1, 1), on_any(1, 3)};
  for (const std::uint32_t value : {0u, 1u}) {
    Task reader = on_any(2, 1, {{value, false, false}});
    reader.options.erase(reader.options.begin());
    graph.tasks.push_back(reader);
  }
  // A copy takes two seconds. The first runs beside the second task, which ends at 4; then the
  // second copy and its reader.
  BOOST_TEST(simulate(graph, {0, 1, 2, 3}, {0, 0, 0, 0}, prices) == 7);
  // Both values at once: the second waits for the link.
  graph.tasks[1] = on_any(1, 0);
  BOOST_TEST(simulate(graph, {0, 1, 2, 3}, {0, 0, 0, 0}, prices) == 6);
}

BOOST_AUTO_TEST_CASE(what_was_loaded_serves_the_next_task_too) {
  const Prices prices(equal_devices(1, 1e9, 0), {});
  TaskGraph graph;
  graph.load_count = 1;
  for (int i = 0; i < 3; ++i) {
    Task task = on_any(1, 1);
    task.options.front().loads = {{0, 10}};
    graph.tasks.push_back(task);
  }
  BOOST_TEST(simulate(graph, {0, 1, 2}, {0, 0, 0}, prices) == 13);
}

BOOST_AUTO_TEST_CASE(several_devices_are_left_alone_where_they_gain_nothing) {
  const Prices prices(equal_devices(4, 1e9, 0.1), {});
  TaskGraph graph;
  for (std::uint32_t t = 0; t < 20; ++t) {
    graph.tasks.push_back(on_any(
        4, 1, t == 0 ? std::vector<TaskInput>() : std::vector<TaskInput>{{t - 1, false, false}}));
    graph.values.push_back({t, 1000, 0xffffffff});
  }
  const TaskSchedule found = schedule(graph, prices);
  BOOST_TEST(found.options == std::vector<std::uint32_t>(20, 0), boost::test_tools::per_element());
  BOOST_TEST(found.seconds == 20);
}

BOOST_AUTO_TEST_CASE(independent_tasks_fill_all_devices) {
  const Prices prices(equal_devices(4, 1e9, 0.1), {});
  TaskGraph graph;
  for (int t = 0; t < 20; ++t) graph.tasks.push_back(on_any(4, 1));
  BOOST_TEST(schedule(graph, prices).seconds == 5);
}

BOOST_AUTO_TEST_CASE(a_task_over_several_devices_waits_for_all_of_them) {
  const Prices prices(equal_devices(2, 1e9, 0), {});
  TaskGraph graph;
  graph.tasks = {on_any(1, 2), Task{{{1, {1}, 3, {}}}, {}}, Task{{{0, {0, 1}, 1, {}}}, {}}};
  BOOST_TEST(simulate(graph, {0, 1, 2}, {0, 0, 0}, prices) == 4);
}

BOOST_AUTO_TEST_SUITE_END()
