// Who may take how much, when others take memory of the same device.
#include "engine/memory/ledger.h"

#include <boost/test/unit_test.hpp>
#include <random>
#include <thread>

#include "tests/support/refusal.h"

using namespace heddle::engine;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// A device of 100 MiB whose driver knows what we and others have taken, and a clock.
struct Driver {
  double seconds = 0;
  std::uint64_t total = 100 * kMiB, ours = 0, others = 0;
  Ledger ledger;
  TakenBytes taken;

  explicit Driver(std::uint64_t budget = Ledger::kNoLimit, std::uint64_t headroom = 0,
                  std::shared_ptr<Ledger> parent = nullptr)
      : ledger(
            "fake:0", {budget, headroom, 2, [this] { return seconds; }},
            [this] { return total - ours - others; }, std::move(parent)) {}
  bool take(std::uint64_t bytes) {
    auto more = ledger.try_take(bytes);
    if (!more) return false;
    taken.add(std::move(*more));
    ours += bytes;
    return true;
  }
  void give_back(std::uint64_t bytes) {
    ours -= bytes;
    taken.give_back(bytes);
  }
};

std::string text_of(const Error& error) { return error.what(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(ledger)

BOOST_AUTO_TEST_CASE(a_budget_holds_to_the_byte) {
  Driver driver(10 * kMiB);
  BOOST_TEST(driver.take(10 * kMiB - 1));
  BOOST_TEST(driver.ledger.available() == 1u);
  BOOST_TEST(!driver.take(2));
  BOOST_TEST(driver.take(1));
  BOOST_TEST(!driver.take(1));
  driver.give_back(5 * kMiB);
  BOOST_TEST(driver.ledger.available() == 5 * kMiB);
}

BOOST_AUTO_TEST_CASE(headroom_is_left_of_what_the_driver_has_free) {
  Driver driver(Ledger::kNoLimit, 10 * kMiB);
  BOOST_TEST(driver.ledger.available() == 90 * kMiB);
  BOOST_TEST(!driver.take(90 * kMiB + 1));
  BOOST_TEST(driver.take(90 * kMiB));
  BOOST_TEST(driver.ledger.available() == 0u);
}

BOOST_AUTO_TEST_CASE(the_driver_is_asked_every_two_seconds_and_what_comes_free_is_used) {
  Driver driver;
  driver.others = 70 * kMiB;
  BOOST_TEST(driver.ledger.available() == 30 * kMiB);
  driver.others = 0;
  driver.seconds = 1.9;
  BOOST_TEST(driver.ledger.available() == 30 * kMiB);
  BOOST_TEST(driver.ledger.polls() == 1u);
  driver.seconds = 2;
  BOOST_TEST(driver.ledger.available() == 100 * kMiB);
  BOOST_TEST(driver.ledger.polls() == 2u);
}

BOOST_AUTO_TEST_CASE(a_step_asks_again_what_is_older_than_a_part_of_that) {
  Driver driver;
  driver.others = 70 * kMiB;
  BOOST_TEST(driver.ledger.most() == 30 * kMiB);
  driver.others = 0;
  driver.seconds = 0.2;
  driver.ledger.poll_all_after(0.25);
  BOOST_TEST(driver.ledger.most() == 30 * kMiB);
  driver.seconds = 0.25;
  driver.ledger.poll_all_after(0.25);
  BOOST_TEST(driver.ledger.most() == 100 * kMiB);
  driver.seconds = 2.2;
  driver.ledger.available();
  BOOST_TEST(driver.ledger.polls() == 2u);  // counted from the last question, whoever asked
  driver.seconds = 4.3;
  driver.ledger.poll_all_after(9);
  BOOST_TEST(driver.ledger.polls() == 3u);  // but no less often than all others do
}

BOOST_AUTO_TEST_CASE(between_two_questions_what_we_take_counts) {
  Driver driver;
  driver.ledger.available();
  BOOST_TEST(driver.take(60 * kMiB));
  BOOST_TEST(!driver.take(41 * kMiB));
  driver.give_back(30 * kMiB);
  BOOST_TEST(driver.take(70 * kMiB));
  BOOST_TEST(driver.ledger.polls() == 1u);
}

BOOST_AUTO_TEST_CASE(the_driver_is_asked_before_memory_is_said_to_be_out) {
  Driver driver;
  driver.others = 90 * kMiB;
  driver.ledger.available();
  driver.others = 20 * kMiB;  // gone since: nobody has asked yet
  const TakenBytes taken = driver.ledger.take(50 * kMiB, "a test");
  driver.ours = 50 * kMiB;
  driver.others = 45 * kMiB;
  const std::uint64_t polls = driver.ledger.polls();
  const Error error =
      heddle::test::refusal_of([&] { (void)driver.ledger.take(31 * kMiB, "the ring of a model"); });
  BOOST_TEST((error.code() == Code::out_of_memory));
  BOOST_TEST(driver.ledger.polls() > polls);
}

BOOST_AUTO_TEST_CASE(what_is_reserved_nobody_else_gets) {
  Driver driver(10 * kMiB);
  Reservation claim = driver.ledger.reserve(6 * kMiB, "a session");
  BOOST_TEST(driver.ledger.available() == 4 * kMiB);
  BOOST_TEST(!driver.take(5 * kMiB));
  auto first = driver.ledger.try_take(5 * kMiB, &claim);
  BOOST_TEST(first.has_value());
  BOOST_TEST(claim.left() == 1 * kMiB);
  BOOST_TEST(driver.ledger.available() == 4 * kMiB);
  auto second = driver.ledger.try_take(3 * kMiB, &claim);
  BOOST_TEST(second.has_value());  // the last of the claim, and 2 MiB more
  BOOST_TEST(claim.left() == 0u);
  BOOST_TEST(driver.ledger.available() == 2 * kMiB);
  first.reset();
  second.reset();
  {
    Reservation other = driver.ledger.reserve(10 * kMiB, "another");
    BOOST_TEST(!driver.ledger.try_reserve(1).has_value());
    claim = std::move(other);
  }
  BOOST_TEST(driver.ledger.available() == 0u);
  claim.release();
  BOOST_TEST(driver.ledger.available() == 10 * kMiB);
}

BOOST_AUTO_TEST_CASE(those_who_can_let_go_are_asked_in_turn_and_only_as_long_as_bytes_are_missing) {
  Driver driver(10 * kMiB);
  BOOST_TEST(driver.take(10 * kMiB));
  std::vector<std::string> asked;
  const auto gives = [&](const char* name, std::uint64_t most) {
    return [&, name, most](std::uint64_t missing) {
      asked.push_back(std::string(name) + " " + std::to_string(missing / kMiB));
      driver.give_back(std::min(most, missing));
    };
  };
  driver.ledger.on_shortage(EvictionOrder::file_bytes, &asked, gives("second", 8 * kMiB));
  driver.ledger.on_shortage(EvictionOrder::merged_weights, &driver, gives("first", 2 * kMiB));
  driver.ledger.on_shortage(EvictionOrder::cached_values, &driver, gives("third", 8 * kMiB));
  const TakenBytes three = driver.ledger.take(3 * kMiB, "a test");
  BOOST_TEST(asked == (std::vector<std::string>{"first 3", "second 1"}),
             boost::test_tools::per_element());
  driver.ledger.remove_evict_callback(&asked);
  asked.clear();
  const TakenBytes four = driver.ledger.take(4 * kMiB, "a test");
  BOOST_TEST(asked == (std::vector<std::string>{"first 4", "third 2"}),
             boost::test_tools::per_element());
  const auto evicted = [&](EvictionOrder what) {
    return driver.ledger.report().evicted[std::size_t(what)];
  };
  BOOST_TEST(evicted(EvictionOrder::merged_weights).times == 2u);
  BOOST_TEST(evicted(EvictionOrder::merged_weights).bytes == 4 * kMiB);
  BOOST_TEST(evicted(EvictionOrder::file_bytes).bytes == 1 * kMiB);
  BOOST_TEST(evicted(EvictionOrder::cached_values).bytes == 2 * kMiB);
  BOOST_TEST(evicted(EvictionOrder::free_chunks).times == 0u);
}

BOOST_AUTO_TEST_CASE(children_take_of_their_parent_too) {
  const auto host = std::make_shared<Ledger>("host", Ledger::Limits{10 * kMiB});
  Ledger one("cpu:0", {8 * kMiB}, {}, host), two("cpu:1", {8 * kMiB}, {}, host);
  std::optional<TakenBytes> seven = one.try_take(7 * kMiB);
  BOOST_TEST_REQUIRE(seven.has_value());
  BOOST_TEST(host->available() == 3 * kMiB);
  BOOST_TEST(two.available() == 3 * kMiB);
  BOOST_TEST(!two.try_take(4 * kMiB).has_value());
  BOOST_TEST(two.report().taken == 0u);  // what the parent refused is not counted below
  {
    const Reservation claim = two.reserve(3 * kMiB, "a test");
    BOOST_TEST(!one.try_take(1).has_value());
  }
  // What the other one can evict helps.
  host->on_shortage(EvictionOrder::free_chunks, &one,
                    [&](std::uint64_t missing) { seven->give_back(missing); });
  const TakenBytes four = two.take(4 * kMiB, "a test");
  BOOST_TEST(one.report().taken == 6 * kMiB);
  BOOST_TEST(host->report().taken == 10 * kMiB);
}

BOOST_AUTO_TEST_CASE(a_cap_holds_as_long_as_it_lives_and_makes_what_is_above_it_go) {
  Driver driver(10 * kMiB);
  BOOST_TEST(driver.take(9 * kMiB));
  driver.ledger.on_shortage(EvictionOrder::free_chunks, &driver,
                            [&](std::uint64_t missing) { driver.give_back(missing); });
  {
    const Ledger::Cap cap(driver.ledger, 6 * kMiB);
    BOOST_TEST(driver.ours == 6 * kMiB);
    BOOST_TEST(driver.ledger.budget() == 6 * kMiB);
    BOOST_TEST(!driver.take(1));
  }
  BOOST_TEST(driver.take(4 * kMiB));
}

BOOST_AUTO_TEST_CASE(an_error_says_who_holds_what) {
  Driver driver(64 * kMiB, 2 * kMiB);
  driver.others = 30 * kMiB;
  BOOST_TEST(driver.take(60 * kMiB));
  Ledger& ledger = driver.ledger;
  const MemoryTag flux{MemoryKind::weights, ledger.owner("flux")};
  TaggedBytes weights(ledger, flux, 40 * kMiB);
  ledger.pin(flux, 10 * kMiB);
  const TaggedBytes activations(ledger, {MemoryKind::activations, 0}, 12 * kMiB);
  const Error error =
      heddle::test::refusal_of([&] { (void)ledger.take(20 * kMiB, "the weight 'single.17'"); });
  BOOST_TEST(text_of(error) ==
             "out of memory on fake:0: wanted 20.0 MiB for the weight 'single.17'; budget 64.0 "
             "MiB, 10.0 MiB free by the driver "
             "less 2.0 MiB for others: weights of flux 40.0 MiB (pinned 10.0 MiB), activations "
             "12.0 MiB, free in pools 8.0 MiB. "
             "Raise its budget, end what else uses it, or place less there");
  BOOST_TEST((error.code() == Code::out_of_memory));
  ledger.unpin(flux, 10 * kMiB);
  weights.end();
  BOOST_TEST(ledger.report().held.size() == 1u);
}

BOOST_AUTO_TEST_CASE(taken_bytes_go_back_by_themselves_and_leave_the_book) {
  const auto host = std::make_shared<Ledger>("host", Ledger::Limits{10 * kMiB});
  Ledger ledger("cpu:0", {10 * kMiB}, {}, host);
  {
    TakenBytes one = ledger.take(3 * kMiB, "a test"), two = ledger.take(4 * kMiB, "a test");
    one.tag({MemoryKind::values, 0});
    two.tag({MemoryKind::values, 0});
    one.add(std::move(two));
    BOOST_TEST(one.bytes() == 7 * kMiB);
    BOOST_TEST(two.bytes() == 0u);
    two = {};
    BOOST_TEST(host->report().taken == 7 * kMiB);
    one.give_back(2 * kMiB);
    const LedgerReport now = ledger.report();
    BOOST_TEST(now.taken == 5 * kMiB);
    BOOST_TEST_REQUIRE(now.held.size() == 1u);
    BOOST_TEST(now.held[0].bytes == 5 * kMiB);
  }
  BOOST_TEST(ledger.report().taken == 0u);
  BOOST_TEST(host->report().taken == 0u);
  BOOST_TEST(ledger.report().held.empty());
}

BOOST_AUTO_TEST_CASE(a_refusal_makes_others_go_whatever_room_there_seems_to_be) {
  Driver driver;
  BOOST_TEST(driver.take(20 * kMiB));
  BOOST_TEST(!driver.ledger.after_refusal(5 * kMiB));
  driver.ledger.on_shortage(EvictionOrder::free_chunks, &driver,
                            [&](std::uint64_t missing) { driver.give_back(missing); });
  BOOST_TEST(driver.ledger.after_refusal(5 * kMiB));
  BOOST_TEST(driver.ours == 15 * kMiB);
}

BOOST_AUTO_TEST_CASE(four_threads_never_exceed_the_budget) {
  constexpr std::uint64_t kBudget = 1000;
  const auto host = std::make_shared<Ledger>("host", Ledger::Limits{kBudget});
  Ledger ledger("cpu:0", {kBudget}, {}, host);
  std::atomic<std::uint64_t> taken{0}, most{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 2000; ++i) {
        const std::uint64_t bytes = 1 + random() % 500;
        std::optional<Reservation> claim = i % 2 == 0 ? ledger.try_reserve(bytes) : std::nullopt;
        const auto bytes_taken = ledger.try_take(bytes, claim ? &*claim : nullptr);
        if (!bytes_taken) continue;
        const std::uint64_t now = taken += bytes;
        std::uint64_t seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        taken -= bytes;
      }
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(most <= kBudget);
  BOOST_TEST(most > 0u);
  BOOST_TEST(ledger.available() == kBudget);
  BOOST_TEST(host->available() == kBudget);
}

BOOST_AUTO_TEST_SUITE_END()
