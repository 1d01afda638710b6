// How long jobs will wait.
#include "engine/queue/wait_forecast.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"

using namespace heddle::engine;

namespace {

using Seconds = std::vector<std::optional<double>>;

std::string begins(const Seconds& running, const Seconds& waiting, std::size_t workers) {
  std::string text;
  for (const std::optional<double>& begin : forecast_waits(running, waiting, workers))
    text += begin ? cat(*begin, " ") : "? ";
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(wait_forecast)

BOOST_AUTO_TEST_CASE(jobs_begin_as_workers_become_free) {
  BOOST_TEST(begins({}, {}, 1) == "");
  BOOST_TEST(begins({}, {10, 5, 1}, 1) == "0 10 15 ");
  BOOST_TEST(begins({3}, {10, 5, 1}, 1) == "3 13 18 ");
  BOOST_TEST(begins({3}, {10, 5, 1}, 2) == "0 3 8 ");
  BOOST_TEST(begins({3, 20}, {10, 5, 1}, 2) == "3 13 18 ");
}

BOOST_AUTO_TEST_CASE(what_is_not_known_is_not_told) {
  BOOST_TEST(begins({{}}, {1, 1}, 1) == "? ? ");
  BOOST_TEST(begins({{}}, {1, 1}, 2) == "0 1 ");
  BOOST_TEST(begins({}, {{}, 1}, 1) == "0 ? ");
}

BOOST_AUTO_TEST_CASE(more_may_run_than_there_are_workers) {
  BOOST_TEST(begins({2, 8}, {1}, 1) == "8 ");
}

BOOST_AUTO_TEST_CASE(what_takes_longer_than_expected_ends_some_day) {
  BOOST_TEST(seconds_left(10, 4) == 6);
  BOOST_TEST(seconds_left(10, 10) == 1);
  BOOST_TEST(seconds_left(10, 100) == 10);
}

BOOST_AUTO_TEST_SUITE_END()
