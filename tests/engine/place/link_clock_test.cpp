// Copies in simulated time.
#include "engine/place/link_clock.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/random_tasks.h"

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(link_clock)

BOOST_AUTO_TEST_CASE(each_direction_of_a_link_carries_one_value_at_a_time) {
  constexpr std::uint64_t kSecond = 1'000'000'000;  // bytes
  LinkClock links(Prices(heddle::test::equal_devices(3, 1e9, 0.25), {}));
  BOOST_TEST(links.arrival(0, 1, 1, kSecond) == 2.25);
  BOOST_TEST(links.arrival(0, 1, 1, kSecond) == 2.25);  // asking occupies nothing
  BOOST_TEST(links.send(0, 1, 1, kSecond) == 2.25);
  BOOST_TEST(links.send(0, 1, 0, kSecond) == 3.5);  // behind the first
  BOOST_TEST(links.send(0, 1, 5, kSecond) == 6.25);
  BOOST_TEST(links.send(1, 0, 0, kSecond) == 1.25);
  BOOST_TEST(links.send(0, 2, 0, kSecond) == 1.25);
  BOOST_TEST(links.send(0, links.end_of(kHostSide), 0, kSecond) == 1.25);
  links.reset();
  BOOST_TEST(links.send(0, 1, 0, kSecond) == 1.25);
}

BOOST_AUTO_TEST_CASE(in_shared_memory_nothing_is_copied_and_nobody_waits) {
  Topology topology;
  topology.devices = {{"cpu:0", "cpu", "Processor", true}, {"cpu:1", "cpu", "Processor", true}};
  LinkClock links(Prices(topology, {}));
  BOOST_TEST(links.is_shared(0, 1));
  BOOST_TEST(links.send(0, 1, 2, 1'000'000'000) == 2);
  BOOST_TEST(links.send(0, 1, 1, 1'000'000'000) == 1);
}

BOOST_AUTO_TEST_SUITE_END()
