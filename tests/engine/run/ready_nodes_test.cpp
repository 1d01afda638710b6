#include "engine/run/ready_nodes.h"

#include <boost/test/unit_test.hpp>

#include "tests/engine/run/run_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::Schedule;

namespace {

constexpr auto kNone = Schedule::kNone;
bool nothing_known(engine::NodeIndex) { return false; }

// Nodes without inputs, on the places given.
Flow sinks(const std::vector<Place>& places) {
  Flow flow;
  for (std::size_t i = 0; i < places.size(); ++i)
    flow.add(std::to_string(i), places[i], {}, nullptr, HEDDLE_NODE_SINK);
  return flow;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(schedule)

BOOST_AUTO_TEST_CASE(free_queues_are_taken_by_rank) {
  const Flow flow = sinks({Place::first, Place::first, Place::second, Place::host});
  const engine::RunGraph run(flow.graph, flow.plan);
  Schedule schedule(run, 2);
  for (const engine::NodeIndex n : {3u, 2u, 1u, 0u}) schedule.activate(n, nothing_known);
  BOOST_TEST(schedule.take() == 0u);
  BOOST_TEST(schedule.take() == 2u);
  BOOST_TEST(schedule.take() == 3u);
  BOOST_TEST(!schedule.can_take());
  BOOST_TEST(schedule.take() == kNone);
  schedule.leave(0);
  BOOST_TEST(schedule.take() == 1u);
  BOOST_TEST(schedule.is_idle());
}

BOOST_AUTO_TEST_CASE(a_node_on_two_queues_waits_for_both_and_is_not_overtaken) {
  const Flow flow = sinks({Place::first, Place::first, Place::second, Place::first});
  const engine::RunGraph run(flow.graph, flow.plan);
  Schedule schedule(run, 2);
  const std::uint32_t both[] = {0, 1};
  schedule.take_together(1, both);
  for (engine::NodeIndex n = 0; n < 4; ++n) schedule.activate(n, nothing_known);
  BOOST_TEST(schedule.take() == 0u);
  BOOST_TEST(schedule.take() == kNone);  // 2 is behind 1, which waits for the first device
  schedule.leave(0);
  BOOST_TEST(schedule.take() == 1u);
  BOOST_TEST(schedule.take() == kNone);
  schedule.leave(1);
  BOOST_TEST(schedule.take() == 2u);
  BOOST_TEST(schedule.take() == 3u);
}

BOOST_AUTO_TEST_CASE(outputs_are_unread_after_the_last_reader) {
  Flow flow;
  const auto a = flow.add("a", Place::first, {}, nullptr);
  const auto b = flow.add("b", Place::first, {{{a, 0}}}, nullptr, HEDDLE_NODE_SINK);
  const auto c = flow.add("c", Place::first, {{{a, 0}}, {{a, 0}}}, nullptr, HEDDLE_NODE_SINK);
  const engine::RunGraph run(flow.graph, flow.plan);
  Schedule schedule(run, 2);
  schedule.hold({c, 0});
  schedule.activate(b, nothing_known);
  schedule.activate(c, nothing_known);
  std::vector<engine::NodeIndex> unread;
  for (const engine::NodeIndex expected : {a, b, c}) {
    const engine::NodeIndex n = schedule.take();
    BOOST_TEST(n == expected);
    schedule.finish(n, [&](const engine::Source& source) { unread.push_back(source.node); });
    schedule.leave(n);
    if (n == a) BOOST_TEST(unread.empty());
    if (n == b) BOOST_TEST(unread == std::vector{b}, boost::test_tools::per_element());
  }
  BOOST_TEST(unread == (std::vector{b, a}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(nothing_is_computed_for_what_is_known) {
  Flow flow;
  const auto a = flow.add("a", Place::first, {}, nullptr);
  const auto b = flow.add("b", Place::first, {{{a, 0}}}, nullptr);
  const auto c = flow.add("c", Place::first, {{{a, 0}}, {{b, 0}}}, nullptr, HEDDLE_NODE_SINK);
  for (const engine::NodeIndex known : {a, b, c}) {
    const engine::RunGraph run(flow.graph, flow.plan);
    Schedule schedule(run, 2);
    int asked = 0;
    schedule.activate(c, [&](engine::NodeIndex n) {
      ++asked;
      return n == known;
    });
    std::vector<engine::NodeIndex> taken;
    for (engine::NodeIndex n = schedule.take(); n != kNone; n = schedule.take()) {
      taken.push_back(n);
      schedule.finish(n, [](const engine::Source&) {});
      schedule.leave(n);
    }
    const auto expected = known == a   ? std::vector{b, c}
                          : known == b ? std::vector{a, c}
                                       : std::vector<engine::NodeIndex>{};
    BOOST_TEST(taken == expected, boost::test_tools::per_element());
    BOOST_TEST(asked == (known == c ? 1 : 3));
  }
}

BOOST_AUTO_TEST_SUITE_END()
