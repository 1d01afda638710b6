// Devices that are disabled and drained while runs hold them.
#include "engine/resources/device_service.h"

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <future>

using heddle::engine::DeviceService;
using State = DeviceService::State;

namespace {

constexpr std::array<std::uint32_t, 1> kFirst{0};
constexpr std::array<std::uint32_t, 2> kBoth{0, 1};

struct ServiceFixture {
  DeviceService service;
  std::vector<std::uint32_t> given_back;
  bool is_empty = true;

  ServiceFixture() { service.set_count(2); }
  void finish() {
    service.finish_drains([&](std::uint32_t d) {
      given_back.push_back(d);
      return is_empty;
    });
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(device_service, ServiceFixture)

BOOST_AUTO_TEST_CASE(a_plan_with_a_device_that_is_not_enabled_holds_nothing) {
  service.disable(1);
  BOOST_TEST(!service.try_hold(kBoth).has_value());
  BOOST_TEST(service.try_hold(kFirst).has_value());
  service.drain(0);
  finish();  // what the refused plan did not get is held by nobody
  BOOST_TEST((service.state(0) == State::drained));
  service.enable(1);
  service.enable(0);
  BOOST_TEST(service.try_hold(kBoth).has_value());
}

BOOST_AUTO_TEST_CASE(the_last_run_of_a_draining_device_lets_it_go) {
  auto held = service.try_hold(kFirst);
  service.hold(0);
  service.drain(0);
  finish();
  BOOST_TEST(given_back.empty());
  held.reset();
  finish();
  BOOST_TEST(given_back.empty());
  service.release(0);
  finish();
  BOOST_TEST(given_back == std::vector<std::uint32_t>{0}, boost::test_tools::per_element());
  BOOST_TEST((service.state(0) == State::drained));
  BOOST_TEST((service.state(1) == State::enabled));
  finish();
  BOOST_TEST(given_back.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_device_with_memory_in_use_stays_draining_until_that_has_gone) {
  is_empty = false;
  service.drain(0);
  finish();
  BOOST_TEST((service.state(0) == State::draining));
  BOOST_TEST(!service.wait_drained(kFirst, std::chrono::milliseconds(0)));
  service.disable(0);  // changes nothing
  is_empty = true;
  finish();
  BOOST_TEST((service.state(0) == State::drained));
  service.drain(0);
  BOOST_TEST((service.state(0) == State::drained));
}

BOOST_AUTO_TEST_CASE(a_device_that_is_enabled_again_in_time_is_not_drained) {
  auto held = service.try_hold(kFirst);
  service.drain(0);
  service.enable(0);
  held.reset();
  finish();
  BOOST_TEST(given_back.empty());
  BOOST_TEST(service.wait_drained(kFirst, {}));
}

BOOST_AUTO_TEST_CASE(a_run_waits_for_a_device_that_is_just_giving_back) {
  service.drain(0);
  std::future<bool> holds;
  service.finish_drains([&](std::uint32_t) {
    service.enable(0);
    holds = std::async(std::launch::async, [&] { return service.try_hold(kFirst).has_value(); });
    BOOST_TEST((holds.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout));
    return true;
  });
  BOOST_TEST(holds.get());
  BOOST_TEST((service.state(0) == State::enabled));
}

BOOST_AUTO_TEST_CASE(who_holds_a_device_is_told_when_it_is_to_be_drained) {
  int first = 0, both = 0;
  auto one = service.try_hold(kFirst, [&] { ++first; });
  auto two = service.try_hold(kBoth, [&] { ++both; });
  service.disable(1);
  BOOST_TEST(both == 0);
  service.drain(1);
  BOOST_TEST(first == 0);
  BOOST_TEST(both == 1);
  service.drain(0);
  BOOST_TEST(first == 1);
  BOOST_TEST(both == 2);
  one.reset();
  service.drain(0);
  BOOST_TEST(first == 1);
  BOOST_TEST(both == 3);
  two.reset();
  finish();
  BOOST_TEST((service.state(0) == State::drained));
  BOOST_TEST((service.state(1) == State::drained));
}

BOOST_AUTO_TEST_CASE(who_was_refused_is_not_told_later) {
  int told = 0;
  service.disable(0);
  BOOST_TEST(!service.try_hold(kFirst, [&] { ++told; }).has_value());
  service.drain(0);
  BOOST_TEST(told == 0);
}

// Of drains and holds that come at once: whoever has a hold on a draining device has been told.
BOOST_AUTO_TEST_CASE(a_drain_in_the_middle_of_it_is_told_or_refuses) {
  for (int i = 0; i < 200; ++i) {
    std::atomic<bool> is_told{false};
    auto drains = std::async(std::launch::async, [&] { service.drain(0); });
    auto held = service.try_hold(kFirst, [&] { is_told = true; });
    drains.get();
    BOOST_TEST((!held || is_told));
    held.reset();
    service.enable(0);
  }
}

BOOST_AUTO_TEST_SUITE_END()
