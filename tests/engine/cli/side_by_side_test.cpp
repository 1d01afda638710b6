#include "engine/cli/side_by_side.h"

#include <boost/test/unit_test.hpp>

namespace heddle::cli {

BOOST_AUTO_TEST_SUITE(side_by_side)

BOOST_AUTO_TEST_CASE(on_one_device_runs_come_one_after_another) {
  SideBySide runs({"a"});
  BOOST_TEST(runs.may_start());
  runs.begins(0, {"a"});
  BOOST_TEST(!runs.may_start());
  runs.ends(0);
  BOOST_TEST(runs.may_start());
}

BOOST_AUTO_TEST_CASE(every_device_gets_a_run_and_a_device_that_is_done_the_next) {
  SideBySide runs({"a", "b", "c"});
  std::size_t run = 0;
  for (const char* device : {"a", "b", "c"}) {
    BOOST_TEST(runs.may_start());
    runs.begins(run++, {device});
  }
  BOOST_TEST(!runs.may_start());
  runs.ends(1);
  BOOST_TEST(runs.may_start());
  runs.begins(3, {"b"});
  BOOST_TEST(!runs.may_start());
}

BOOST_AUTO_TEST_CASE(runs_on_several_devices_each_are_fewer) {
  SideBySide runs({"a", "b", "c", "d"});
  runs.begins(0, {"a", "b"});
  BOOST_TEST(runs.may_start());
  runs.begins(1, {"c", "d"});
  BOOST_TEST(!runs.may_start());
}

BOOST_AUTO_TEST_CASE(no_more_are_started_when_all_of_them_go_to_the_same_device) {
  SideBySide runs({"a", "b", "c", "d"});
  runs.begins(0, {"a"});
  BOOST_TEST(runs.may_start());
  runs.begins(1, {"a"});
  BOOST_TEST(!runs.may_start());
  runs.ends(0);
  BOOST_TEST(runs.may_start());
  runs.begins(2, {"a"});
  BOOST_TEST(!runs.may_start());
}

BOOST_AUTO_TEST_CASE(a_run_that_waits_to_write_leaves_its_device_to_others_but_not_without_end) {
  SideBySide runs({"slow", "fast"});
  runs.begins(0, {"slow"});
  std::size_t fast = 1;
  while (runs.may_start()) {
    runs.begins(fast, {"fast"});
    BOOST_TEST(!runs.may_start());
    runs.waits(fast++);
    BOOST_TEST_REQUIRE(fast < 100);
  }
  BOOST_TEST(fast == 16);
  for (std::size_t run = 0; run < fast; ++run) runs.ends(run);
  BOOST_TEST(runs.may_start());
}

BOOST_AUTO_TEST_CASE(that_a_run_waits_may_be_heard_before_that_it_has_begun) {
  SideBySide runs({"a", "b"});
  runs.begins(0, {"a"});
  runs.waits(1);
  runs.begins(1, {"a"});
  BOOST_TEST(runs.computing() == 1u);
  BOOST_TEST(runs.may_start());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::cli
