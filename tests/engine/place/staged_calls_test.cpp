// Rounds of stages over several devices: where they are cut or how they are dealt out, and what
// they take.
#include "engine/place/staged_calls.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/random_tasks.h"

using namespace heddle;
using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(staged_calls)

namespace {

// So many rounds of stages that take these seconds and hand on so many bytes.
std::vector<StagedCall> rounds_of(const std::vector<double>& seconds, std::size_t rounds,
                                  std::uint64_t bytes = 0) {
  std::vector<StagedCall> calls;
  for (std::size_t r = 0; r < rounds; ++r)
    for (std::uint32_t s = 0; s < seconds.size(); ++s)
      calls.push_back({s, seconds[s], bytes, 10, bytes + 10});
  return calls;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_device_with_the_most_to_do_has_the_least) {
  const auto of_stage = [](const std::vector<double>& seconds, std::uint32_t devices) {
    return cut_stages(rounds_of(seconds, 3), devices);
  };
  using Cut = std::vector<std::uint32_t>;
  BOOST_TEST(of_stage({1, 1, 1, 1}, 2) == (Cut{0, 0, 1, 1}), boost::test_tools::per_element());
  BOOST_TEST(of_stage({5, 1, 1, 2}, 2) == (Cut{0, 1, 1, 1}), boost::test_tools::per_element());
  BOOST_TEST(of_stage({1, 2, 3, 2, 4}, 3) == (Cut{0, 0, 1, 1, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(of_stage({9, 1, 1}, 3) == (Cut{0, 1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(of_equal_cuts_one_that_hands_on_less_is_taken) {
  std::vector<StagedCall> calls = rounds_of({4, 1, 1, 2}, 2);
  for (StagedCall& call : calls) call.handed_bytes = call.stage == 1 ? 100 : 5;
  const std::vector<std::uint32_t> cut = cut_stages(calls, 2);
  // Before stage 1 it is 4 and 4; any other one is worse.
  BOOST_TEST(cut == (std::vector<std::uint32_t>{0, 1, 1, 1}), boost::test_tools::per_element());
  std::vector<StagedCall> even = rounds_of({4, 0, 4}, 2);
  for (StagedCall& call : even) call.handed_bytes = call.stage == 1 ? 100 : 5;
  BOOST_TEST(cut_stages(even, 2) == (std::vector<std::uint32_t>{0, 0, 1}),
             boost::test_tools::per_element());
}

// Times are estimates: what is within 2 % counts as equal.
BOOST_AUTO_TEST_CASE(of_nearly_equal_cuts_one_that_hands_on_less_is_taken) {
  for (const double last : {3.05, 3.2}) {
    std::vector<StagedCall> calls = rounds_of({3, 1, last}, 2);
    for (StagedCall& call : calls) call.handed_bytes = call.stage == 1 ? 5 : 100;
    // Before stage 2 it is 4 and `last`; before stage 1 it is 3 and 1 more than `last`.
    const std::vector<std::uint32_t> less = {0, 1, 1}, fastest = {0, 0, 1};
    BOOST_TEST(cut_stages(calls, 2) == (last < 3.1 ? less : fastest),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(many_rounds_take_what_the_slowest_device_does_and_one_round) {
  const Topology topology = test::equal_devices(2, 1e9, 0);
  const Prices prices(topology, {});
  const std::vector<std::uint32_t> devices{1, 0};
  const double crossing = prices.transfer_seconds(0, 1, 0);  // from home, and to it
  // 3 and 2 seconds a round: the first one is always busy, and the last round ends on the other.
  const double seconds = staged_seconds(rounds_of({2, 1, 2}, 10), {0, 0, 1}, devices, prices);
  BOOST_TEST(seconds == 10 * 3 + 2 + 2 * crossing, boost::test_tools::tolerance(1e-9));
  // The second one is: it waits for the first round alone.
  BOOST_TEST(staged_seconds(rounds_of({2, 1, 2}, 10), {0, 1, 1}, devices, prices) ==
                 2 + 10 * 3 + 2 * crossing,
             boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(what_is_handed_on_passes_while_devices_compute) {
  const Topology topology = test::equal_devices(2, 1e9, 0);
  const Prices prices(topology, {});
  // A tenth of a second on the way: it delays the first round, from home and to it.
  const double seconds = staged_seconds(rounds_of({1, 1}, 10, 100'000'000), {0, 1}, {1, 0}, prices);
  const double crossing = prices.transfer_seconds(0, 1, 100'000'000);
  BOOST_TEST(crossing > 0);
  BOOST_TEST(seconds >= 11 + 2 * crossing - 1e-9);
  BOOST_TEST(seconds < 11 + 4 * crossing);
}

BOOST_AUTO_TEST_CASE(as_many_devices_are_taken_as_gain_something_home_last) {
  const Topology topology = test::equal_devices(4, 1e9, 0);
  const Prices prices(topology, {});
  const auto placed = place_stages(rounds_of({1, 1, 1, 1}, 20, 8), 0, {0, 1, 2, 3}, prices);
  BOOST_TEST_REQUIRE(placed.has_value());
  BOOST_TEST(placed->devices == (std::vector<std::uint32_t>{1, 2, 3, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(placed->rounds == 20u);
  BOOST_TEST(placed->alone_seconds == 80, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(placed->seconds < 23.01);
  // A stage that takes nearly all of the time leaves nothing for a third device.
  const auto two = place_stages(rounds_of({8, 1, 1}, 20, 8), 0, {0, 1, 2, 3}, prices);
  BOOST_TEST_REQUIRE(two.has_value());
  BOOST_TEST(two->devices.size() == 2u);
  BOOST_TEST(!place_stages(rounds_of({8}, 20, 8), 0, {0, 1}, prices).has_value());
  BOOST_TEST(!place_stages(rounds_of({1, 1}, 1, 8), 0, {0, 1}, prices).has_value());
  BOOST_TEST(!place_stages({}, 0, {0, 1}, prices).has_value());
}

// The end of a clip whose first stage has made more than the second one takes at a time.
BOOST_AUTO_TEST_CASE(a_round_that_begins_behind_waits_for_what_it_takes) {
  const Topology topology = test::equal_devices(2, 1e9, 0);
  const Prices prices(topology, {});
  std::vector<StagedCall> calls = rounds_of({5, 1}, 1, 8);
  for (int i = 0; i < 9; ++i) calls.push_back({1, 1, 8, 10, 18});
  const std::vector<std::uint32_t> devices{1, 0};
  const double crossing = prices.transfer_seconds(0, 1, 8);
  BOOST_TEST(staged_seconds(calls, {0, 1}, devices, prices) == 5 + 10 + 2 * crossing,
             boost::test_tools::tolerance(1e-6));
  // Another clip: its first stage goes on beside what is left of this one.
  for (const StagedCall& call : std::vector<StagedCall>(calls)) calls.push_back(call);
  const double both = staged_seconds(calls, {0, 1}, devices, prices);
  BOOST_TEST(both > 5 + 20);
  BOOST_TEST(both < 2 * 15 - 1);
  const auto placed = place_stages(calls, 0, {0, 1}, prices);
  BOOST_TEST_REQUIRE(placed.has_value());
  BOOST_TEST(placed->rounds == 20u);
  // What ten calls take of the first stage lies there, and what of these rounds crosses.
  const std::uint64_t open = 3;
  BOOST_TEST(placed->under_way_bytes.at(1) == 10 + open * 8 + open * 8 + 10 * 8);
}

// Of each open round what crosses lies on both sides, once more where it is made; what is kept
// lies where its stage is, and on home is the node's.
BOOST_AUTO_TEST_CASE(what_is_under_way_is_counted_on_each_device) {
  const Topology topology = test::equal_devices(2, 1e9, 0);
  const Prices prices(topology, {});
  const auto placed = place_stages(rounds_of({1, 1}, 20, 8), 0, {0, 1}, prices);
  BOOST_TEST_REQUIRE(placed.has_value());
  BOOST_TEST(placed->ahead() == 2u);
  const std::uint64_t open = 3, there = open * 8, given = (open + 1) * 8;
  BOOST_TEST(placed->under_way_bytes.at(1) == 10 + there + given);
  BOOST_TEST(placed->under_way_bytes.at(0) == there + given + 2 * there);  // and results
}

namespace {

// Rounds that have nothing to do with each other.
std::vector<StagedCall> alone(std::vector<StagedCall> calls) {
  for (StagedCall& call : calls) call.is_independent = true;
  return calls;
}

}  // namespace

// One stage is enough where rounds read nothing of each other; no device is given more of them than
// another one, but for one.
BOOST_AUTO_TEST_CASE(rounds_that_are_independent_are_dealt_out) {
  const Topology topology = test::equal_devices(3, 1e9, 0);
  const Prices prices(topology, {});
  const std::vector<StagedCall> calls = alone(rounds_of({2}, 8, 8));
  const auto placed = place_stages(calls, 0, {0, 1, 2}, prices);
  BOOST_TEST_REQUIRE(placed.has_value());
  BOOST_TEST(placed->deals_rounds());
  BOOST_TEST(placed->devices == (std::vector<std::uint32_t>{1, 2, 0}),
             boost::test_tools::per_element());
  std::vector<std::uint32_t> counts(3);
  for (std::uint32_t round = 0; round < 8; ++round) ++counts[placed->device_of(round, 0)];
  for (std::uint32_t i = 0; i < 3; ++i) BOOST_TEST(placed->rounds_of(i) == counts[i]);
  BOOST_TEST(counts == (std::vector<std::uint32_t>{3, 3, 2}), boost::test_tools::per_element());
  BOOST_TEST(placed->alone_seconds == 16, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(placed->seconds == 3 * 2 + prices.transfer_seconds(0, 1, 8),
             boost::test_tools::tolerance(1e-6));
  // Two rounds of each device are open, with what they are given and what they make.
  const std::uint64_t made = 18, open = 2;
  BOOST_TEST(placed->under_way_bytes.at(1) == 10 + open * 8 + 2 * open * made);
  BOOST_TEST(placed->ahead() + 1 == 3 * open);
  // What is given lies at home until those who compute have it.
  BOOST_TEST(placed->under_way_bytes.at(0) == 2 * (3 * open) * 8 + 2 * open * made);
}

BOOST_AUTO_TEST_CASE(no_device_is_without_a_round) {
  const Topology topology = test::equal_devices(4, 1e9, 0);
  const Prices prices(topology, {});
  const auto of = [&](std::size_t rounds) {
    return place_stages(alone(rounds_of({2}, rounds, 8)), 0, {0, 1, 2, 3}, prices);
  };
  BOOST_TEST(!of(1).has_value());
  BOOST_TEST_REQUIRE(of(2).has_value());
  BOOST_TEST(of(2)->devices.size() == 2u);
  // A fourth device leaves two of the rounds to none of the others.
  BOOST_TEST_REQUIRE(of(6).has_value());
  BOOST_TEST(of(6)->devices.size() == 3u);
}

// Of stages that are alike a pipeline waits for what is on the way, and at its ends.
BOOST_AUTO_TEST_CASE(whole_rounds_are_dealt_out_rather_than_cut) {
  const Topology topology = test::equal_devices(2, 1e9, 0);
  const Prices prices(topology, {});
  const auto placed = place_stages(alone(rounds_of({1, 1}, 6, 8)), 0, {0, 1}, prices);
  BOOST_TEST_REQUIRE(placed.has_value());
  BOOST_TEST(placed->deals_rounds());
  const auto cut = place_stages(rounds_of({1, 1}, 6, 8), 0, {0, 1}, prices);
  BOOST_TEST_REQUIRE(cut.has_value());
  BOOST_TEST(!cut->deals_rounds());
  BOOST_TEST(placed->seconds < cut->seconds);
}

BOOST_AUTO_TEST_SUITE_END()
