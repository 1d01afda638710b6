#include "engine/serve/rate_limiter.h"

#include <boost/test/unit_test.hpp>

#include "tests/engine/serve/roles_fixture.h"

using namespace heddle::test;
using heddle::engine::RateLimiter;

namespace {

struct Limited {
  std::int64_t now = 1'000'000;
  RateLimiter limiter{60, [this] { return now; }};
  // How many come through of so many.
  int through(int requests, const std::string& who = "a") {
    int passed = 0;
    for (int i = 0; i < requests; ++i) passed += limiter.take(who) == 0 ? 1 : 0;
    return passed;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(rate_limiters)

BOOST_FIXTURE_TEST_CASE(so_many_come_through_a_minute, Limited) {
  BOOST_TEST(through(100) == 60);
  BOOST_TEST(limiter.take("a") == 1);
  now += 1000;
  BOOST_TEST(through(5) == 1);
  now += 30'000;
  BOOST_TEST(through(100) == 30);
  now += 3'600'000;
  BOOST_TEST(through(100) == 60);  // a pause saves no more
}

BOOST_FIXTURE_TEST_CASE(each_has_their_own, Limited) {
  BOOST_TEST(through(100, "a") == 60);
  BOOST_TEST(through(100, "b") == 60);
}

BOOST_AUTO_TEST_CASE(it_says_when_the_next_one_may_come) {
  std::int64_t now = 0;
  RateLimiter limiter(4, [&] { return now; });
  for (int i = 0; i < 4; ++i) BOOST_TEST(limiter.take("a") == 0);
  BOOST_TEST(limiter.take("a") == 15);
  now += 14'999;
  BOOST_TEST(limiter.take("a") == 1);
  now += 1;
  BOOST_TEST(limiter.take("a") == 0);
}

BOOST_FIXTURE_TEST_CASE(who_is_silent_is_forgotten, Limited) {
  for (int i = 0; i < 1000; ++i) through(1, std::to_string(i));
  BOOST_TEST(limiter.size() == 1000u);
  now += 60'000;
  through(1);
  BOOST_TEST(limiter.size() == 1u);
}

BOOST_AUTO_TEST_CASE(without_a_limit_nobody_is_counted) {
  RateLimiter none(0);
  for (int i = 0; i < 1000; ++i) BOOST_TEST_REQUIRE(none.take("a") == 0);
  BOOST_TEST(none.size() == 0u);
}

BOOST_AUTO_TEST_CASE(keys_are_limited_each_by_itself) {
  WithRoles roles;
  roles.serving.service.reset();
  roles.serving.options.requests_a_minute = 2;
  roles.serving.start();
  Reply late;
  int passed = -1;
  do {  // a slow machine gives some time to come back
    late = roles.as(roles.ann, "GET", "/v1/queue");
    ++passed;
  } while (late.status == 200 && passed < 1000);
  BOOST_TEST(passed >= 2);
  BOOST_TEST(late.status == 429);
  BOOST_TEST(std::stoi(late.header("retry-after")) >= 1);
  BOOST_TEST(late.json().at("error").at("code").as_string() == "too_many_requests");
  BOOST_TEST(roles.as(roles.bob, "GET", "/queue").status == 200);
}

BOOST_AUTO_TEST_SUITE_END()
