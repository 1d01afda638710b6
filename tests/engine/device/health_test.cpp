#include "engine/device/health.h"

#include <boost/test/unit_test.hpp>
#include <limits>

using heddle::engine::DeviceHealth;
using heddle::engine::HealthPolicy;
using heddle::engine::reason_to_leave_out;
using State = heddle::engine::DeviceHealth::State;

namespace {

struct Fixture {
  double now = 1000;
  DeviceHealth health{{.failures = 3, .seconds = 60, .now = [this] { return now; }}};

  void degrade() {
    for (int i = 0; i < 3; ++i) health.run_failed("no answer");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(device_health, Fixture)

BOOST_AUTO_TEST_CASE(the_third_failure_in_a_row_degrades_and_says_so_once) {
  BOOST_TEST(!health.run_failed("first"));
  BOOST_TEST(!health.run_failed("second"));
  BOOST_TEST((health.report().state == State::healthy));
  BOOST_TEST(health.run_failed("third"));
  BOOST_TEST(!health.run_failed("of a run that began before"));
  const DeviceHealth::Report report = health.report();
  BOOST_TEST((report.state == State::degraded));
  BOOST_TEST(report.failures == 4u);
  BOOST_TEST(report.cause == "of a run that began before");
  BOOST_TEST(report.probe_in_seconds == 60);
}

BOOST_AUTO_TEST_CASE(a_success_between_begins_the_count_anew) {
  health.run_failed("first");
  health.run_failed("second");
  health.run_succeeded();
  BOOST_TEST(health.report().failures == 0u);
  BOOST_TEST(health.report().cause == "");
  BOOST_TEST(!health.run_failed("third"));
  BOOST_TEST(!health.run_failed("fourth"));
  BOOST_TEST(health.run_failed("fifth"));
}

BOOST_AUTO_TEST_CASE(a_run_that_ends_well_meanwhile_does_not_replace_the_probe) {
  degrade();
  health.run_succeeded();
  BOOST_TEST((health.report().state == State::degraded));
  BOOST_TEST(health.report().failures == 3u);
}

BOOST_AUTO_TEST_CASE(the_probe_is_for_one_caller_when_its_time_has_come) {
  BOOST_TEST(!health.begin_probe());
  degrade();
  now += 59.5;
  BOOST_TEST(!health.begin_probe());
  BOOST_TEST(health.report().probe_in_seconds == 0.5);
  now += 0.5;
  BOOST_TEST(health.begin_probe());
  BOOST_TEST((health.report().state == State::probing));
  BOOST_TEST(!health.begin_probe());
  health.end_probe("");
  BOOST_TEST((health.report().state == State::healthy));
  BOOST_TEST(health.report().failures == 0u);
  BOOST_TEST(!health.begin_probe());
}

BOOST_AUTO_TEST_CASE(a_probe_that_fails_degrades_for_as_long_again) {
  degrade();
  now += 61;
  BOOST_TEST(health.begin_probe());
  health.end_probe("still no answer");
  BOOST_TEST((health.report().state == State::degraded));
  BOOST_TEST(health.report().failures == 4u);
  BOOST_TEST(health.report().cause == "still no answer");
  BOOST_TEST(health.report().probe_in_seconds == 60);
  now += 59;
  BOOST_TEST(!health.begin_probe());
  now += 1;
  BOOST_TEST(health.begin_probe());
}

BOOST_AUTO_TEST_CASE(both_numbers_are_the_policys) {
  DeviceHealth first({.failures = 1, .seconds = 5, .now = [this] { return now; }});
  BOOST_TEST(first.run_failed("once"));
  now += 5;
  BOOST_TEST(first.begin_probe());
  DeviceHealth never({.failures = 0, .seconds = 5, .now = [this] { return now; }});
  for (int i = 0; i < 100; ++i) BOOST_TEST(!never.run_failed("again"));
  BOOST_TEST((never.report().state == State::healthy));
  DeviceHealth for_good({.failures = 1,
                         .seconds = std::numeric_limits<double>::infinity(),
                         .now = [this] { return now; }});
  BOOST_TEST(for_good.run_failed("once"));
  now += 1e8;
  BOOST_TEST(!for_good.begin_probe());
  BOOST_TEST(reason_to_leave_out(for_good.report()).ends_with("it is probed again in 900000000 s"),
             reason_to_leave_out(for_good.report()));
  const DeviceHealth usual;
  BOOST_TEST((usual.report().state == State::healthy));
  BOOST_TEST(HealthPolicy{}.failures == 3u);
  BOOST_TEST(HealthPolicy{}.seconds == 60);
}

BOOST_AUTO_TEST_CASE(the_reason_names_the_count_the_cause_and_the_next_probe) {
  BOOST_TEST(reason_to_leave_out(health.report()) == "");
  degrade();
  now += 17.25;
  BOOST_TEST(reason_to_leave_out(health.report()) ==
             "it failed 3 times in a row, at last with \"no answer\"; it is probed again in 43 s");
  now += 60;
  BOOST_TEST(reason_to_leave_out(health.report()) ==
             "it failed 3 times in a row, at last with \"no answer\"; the next run probes it");
  health.begin_probe();
  BOOST_TEST(reason_to_leave_out(health.report()) ==
             "it failed 3 times in a row, at last with \"no answer\"; it is being probed");
}

BOOST_AUTO_TEST_SUITE_END()
