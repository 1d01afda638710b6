// Who goes on, and what may begin.
#include "engine/serve/seats.h"

#include <boost/test/unit_test.hpp>
#include <random>

#include "engine/base/text.h"

using namespace heddle::engine;

namespace {

JobClaim claim_named(const std::string& id) { return {id, 1}; }

std::string paused(const Seats& seats) {
  std::string ids;
  for (const JobClaim& claim : seats.giving_way()) ids += claim.id;
  return ids;
}

std::string joined(const std::set<std::string>& models) {
  return join(std::vector<std::string>(models.begin(), models.end()), " ");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(seats)

BOOST_AUTO_TEST_CASE(jobs_have_so_many_seats) {
  Seats seats(2, 1);
  BOOST_TEST((seats.open() == Seats::Open::all));
  seats.take(claim_named("a"), false);
  BOOST_TEST((seats.open() == Seats::Open::interactive));  // the one device is theirs
  seats.take(claim_named("b"), false);
  BOOST_TEST((seats.open() == Seats::Open::none));
  seats.leave(claim_named("a"));
  seats.leave(claim_named("b"));
  BOOST_TEST((seats.open() == Seats::Open::all));
}

BOOST_AUTO_TEST_CASE(background_jobs_give_way_and_go_on) {
  Seats seats(2, 1);
  seats.take(claim_named("x"), true);
  seats.take(claim_named("y"), true);
  BOOST_TEST(paused(seats) == "");
  BOOST_TEST((seats.open() == Seats::Open::interactive));
  seats.take(claim_named("a"), false);
  BOOST_TEST(paused(seats) == "xy");
  BOOST_TEST((seats.open() == Seats::Open::interactive));
  seats.take(claim_named("b"), false);
  BOOST_TEST((seats.open() == Seats::Open::none));
  seats.leave(claim_named("a"));
  BOOST_TEST(paused(seats) == "xy");
  seats.leave(claim_named("b"));
  BOOST_TEST(paused(seats) == "");
}

BOOST_AUTO_TEST_CASE(where_there_are_more_devices_they_go_on) {
  Seats seats(4, 2);
  for (const char* id : {"x", "y", "z"}) seats.take(claim_named(id), true);
  seats.take(claim_named("a"), false);
  BOOST_TEST(paused(seats) == "yz");
  seats.set_gives_way(claim_named("z"), false);  // it has waited for long
  BOOST_TEST(paused(seats) == "xy");
  seats.set_gives_way(claim_named("none"), false);
  seats.leave(claim_named("a"));
  BOOST_TEST(paused(seats) == "y");
}

BOOST_AUTO_TEST_CASE(no_more_go_on_than_there_are_seats) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const std::size_t jobs = 1 + random() % 4, devices = 1 + random() % 3;
    Seats seats(jobs, devices);
    std::vector<std::pair<JobClaim, bool>> there;
    for (int step = 0; step < 60; ++step) {
      const Seats::Open open = seats.open();
      const bool wants_background = random() % 2 == 0;
      if (open == Seats::Open::all || (open == Seats::Open::interactive && !wants_background)) {
        there.emplace_back(claim_named(cat(step)), wants_background);
        seats.take(there.back().first, wants_background);
      } else if (!there.empty()) {
        const std::size_t who = random() % there.size();
        seats.leave(there[who].first);
        there.erase(there.begin() + std::ptrdiff_t(who));
      }
      const std::set<JobClaim> paused = seats.giving_way();
      BOOST_TEST_REQUIRE(there.size() - paused.size() <= jobs);
      for (const auto& [claim, is_background] : there)
        BOOST_TEST_REQUIRE((is_background || !paused.contains(claim)));
      // Nobody is paused for nobody.
      const bool has_interactive =
          std::ranges::any_of(there, [](const auto& one) { return !one.second; });
      if (!has_interactive) BOOST_TEST_REQUIRE(paused.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(models_wait_where_least_is_under_way) {
  WarmModels warm({"d0", "d1"});
  BOOST_TEST(joined(warm.waiting({})) == "");
  warm.ran_on({"d0"}, "x");
  warm.ran_on({"d1"}, "y");
  warm.ran_on({"d1"}, "");
  BOOST_TEST(joined(warm.waiting({})) == "x y");
  BOOST_TEST(joined(warm.waiting({{"d0"}})) == "y");
  BOOST_TEST(joined(warm.waiting({{"d0", "d1"}, {"d1", "elsewhere"}})) == "x");
  BOOST_TEST(joined(WarmModels().waiting({{"d0"}})) == "");
}

BOOST_AUTO_TEST_SUITE_END()
