#include "engine/resources/single_flight.h"

#include <boost/test/unit_test.hpp>

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(single_flight)

namespace {

constexpr Hash128 kKey{1, 2}, kOther{17, 2};  // in one part of the table

struct Listener final : SingleFlight::Run {
  std::list<SingleFlight::News> heard;
  void hear(std::list<SingleFlight::News>& one) noexcept override {
    heard.splice(heard.end(), one);
  }
};

struct Flights {
  SingleFlight flights;
  Listener first, second, third;
  SingleFlight::Flight flight = flights.begin(kKey, first, 0, 0).flight;
};

const std::vector<Value> kFive{make_value(std::int64_t{5})};

}  // namespace

BOOST_FIXTURE_TEST_CASE(one_computes_and_the_others_hear_of_it, Flights) {
  BOOST_TEST(bool(flight));
  BOOST_TEST(flights.begin(kKey, second, 7, 0).waits);
  BOOST_TEST(flights.begin(kKey, third, 8, 1).waits);
  BOOST_TEST(!flights.begin(kOther, third, 9, 1).waits);
  BOOST_TEST(flights.waiting() == 2u);
  flight.finish(kFive, {});
  BOOST_TEST(!flight);
  BOOST_TEST(flights.waiting() == 0u);
  BOOST_TEST(first.heard.empty());
  BOOST_TEST_REQUIRE(second.heard.size() == 1u);
  BOOST_TEST(second.heard.front().node == 7u);
  BOOST_TEST(get_int(*second.heard.front().outputs->front()) == 5);
  BOOST_TEST(third.heard.front().node == 8u);
  BOOST_TEST(bool(flights.begin(kKey, second, 7, 0).flight));  // it is over
}

BOOST_FIXTURE_TEST_CASE(another_node_of_the_run_that_computes_does_not_wait, Flights) {
  const SingleFlight::Begun begun = flights.begin(kKey, first, 1, 0);
  BOOST_TEST(!begun.waits);
  BOOST_TEST(!begun.flight);
}

BOOST_FIXTURE_TEST_CASE(what_is_given_up_has_to_be_looked_for_again, Flights) {
  WorkMark given_up{std::make_shared<RunWork>(), 0};
  given_up.work->give_up();
  for (const bool is_dropped : {true, false}) {
    second.heard.clear();
    BOOST_TEST(flights.begin(kKey, second, 7, 0).waits);
    if (is_dropped)
      flight.drop();
    else
      flight.finish(kFive, given_up);
    BOOST_TEST_REQUIRE(second.heard.size() == 1u);
    BOOST_TEST(second.heard.front().outputs == nullptr);
    BOOST_TEST(second.heard.front().failure == nullptr);
    flight = flights.begin(kKey, first, 0, 0).flight;
    BOOST_TEST_REQUIRE(bool(flight));
  }
}

BOOST_FIXTURE_TEST_CASE(a_fault_of_a_device_is_told_to_who_would_use_it, Flights) {
  flights.begin(kKey, second, 7, 0);
  flights.begin(kKey, third, 8, 1);
  flight.fail(Error(Code::out_of_memory, "no room"), true);
  BOOST_TEST_REQUIRE(second.heard.front().failure != nullptr);
  BOOST_TEST(second.heard.front().failure->full() == "no room");
  BOOST_TEST(third.heard.front().failure == nullptr);
}

BOOST_FIXTURE_TEST_CASE(any_other_fault_is_told_to_all, Flights) {
  flights.begin(kKey, second, 7, 0);
  flights.begin(kKey, third, 8, 1);
  flight.fail(Error(Code::invalid_argument, "wrong"), false);
  for (const Listener* run : {&second, &third}) {
    BOOST_TEST_REQUIRE(run->heard.front().failure != nullptr);
    BOOST_TEST(run->heard.front().failure->full() == "wrong");
  }
}

// It goes on all the same, while another run has begun a flight of its own.
BOOST_FIXTURE_TEST_CASE(a_flight_that_was_taken_away_tells_nobody_anything, Flights) {
  flights.begin(kKey, second, 7, 0);
  flights.drop(first);
  BOOST_TEST(second.heard.size() == 1u);
  SingleFlight::Flight next = flights.begin(kKey, second, 7, 0).flight;
  BOOST_TEST(bool(next));
  BOOST_TEST(flights.begin(kKey, third, 8, 0).waits);
  flight.finish(kFive, {});
  BOOST_TEST(third.heard.empty());
  next.finish(kFive, {});
  BOOST_TEST(third.heard.size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(who_has_withdrawn_hears_nothing, Flights) {
  flights.begin(kKey, second, 7, 0);
  flights.begin(kKey, third, 8, 0);
  flights.withdraw(second);
  BOOST_TEST(flights.waiting() == 1u);
  flight.finish(kFive, {});
  BOOST_TEST(second.heard.empty());
  BOOST_TEST(third.heard.size() == 1u);
}

BOOST_AUTO_TEST_CASE(runs_are_numbered_and_know_whether_there_are_others) {
  SingleFlight flights;
  const SingleFlight::Member first(flights);
  BOOST_TEST(!first.has_others());
  {
    const SingleFlight::Member second(flights);
    BOOST_TEST(first.has_others());
    BOOST_TEST(first.number() != second.number());
  }
  BOOST_TEST(!first.has_others());
}

BOOST_AUTO_TEST_SUITE_END()
