// Many who want host memory at once, and what is read ahead of them.
#include <boost/test/unit_test.hpp>
#include <future>
#include <thread>

#include "tests/engine/memory/host_fixture.h"

using namespace heddle;

using Names = std::vector<std::string>;

BOOST_FIXTURE_TEST_SUITE(host_threads, test::HostFixture)

BOOST_AUTO_TEST_CASE(four_loading_threads_never_exceed_the_limit) {
  write(24, 500);
  const std::uint64_t limit = 5 * (kPart + engine::page_bytes());
  make(limit, 3 * kPart, kPart, 2);
  const auto load = [&](unsigned seed) {
    std::mt19937 random(seed);
    const auto& reader = seed % 2 == 0 ? cpu() : fake(seed / 2);
    engine::Stream stream(*reader);
    std::vector<engine::FilePart> order;
    for (int i = 0; i < 40; ++i)
      order.push_back(part(random() % 24, random() % 8, 8 + random() % 9));
    const engine::Expectation expectation = host->expect(order, engine::UseOrder::once, reader);
    std::size_t wrong = 0;
    for (const engine::FilePart& one : order) {
      const auto lease = get(one, reader);
      wrong += is_right(*lease, one) ? 0 : 1;
      engine::Event passed(*reader);
      stream.record(passed);
      if (random() % 2 == 0) lease->end_with(std::move(passed));
    }
    stream.synchronize();
    return wrong;
  };
  std::vector<std::future<std::size_t>> loading;
  for (unsigned seed = 0; seed < 4; ++seed)
    loading.push_back(std::async(std::launch::async, load, seed));
  for (auto& one : loading) BOOST_TEST(one.get() == 0u);
  BOOST_TEST(host->report().peak <= limit);
  BOOST_TEST(host->report().peak > limit / 2);
  BOOST_TEST(control->pinned_peak_bytes(0) <= 3 * kPart);
  host.reset();
  BOOST_TEST(room->held() == 0u);
}

BOOST_AUTO_TEST_CASE(two_that_want_all_there_is_take_turns) {
  write(4);
  make(2 * kPart, 2 * kPart);
  const auto load = [&](std::size_t first) {
    const std::vector<engine::FilePart> two{part(first), part(first + 1)};
    std::size_t wrong = 0;
    for (int i = 0; i < 50; ++i) {
      const auto lease = host->get(two, fake(first / 2));
      for (std::size_t p = 0; p < 2; ++p) wrong += is_right(*lease, two[p], p) ? 0 : 1;
    }
    return wrong;
  };
  auto other = std::async(std::launch::async, load, 2);
  BOOST_TEST(load(0) == 0u);
  BOOST_TEST(other.get() == 0u);
  BOOST_TEST(host->report().peak == 2 * kPart);
}

BOOST_AUTO_TEST_CASE(several_who_want_the_same_read_it_once) {
  write(6);
  make(6 * kPart, 6 * kPart, 0, 2);
  const auto load = [&](std::size_t reader) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < 6; ++i)
      wrong += is_right(*get(part(i), fake(reader)), part(i)) ? 0 : 1;
    return wrong;
  };
  std::vector<std::future<std::size_t>> loading;
  for (std::size_t t = 0; t < 4; ++t)
    loading.push_back(std::async(std::launch::async, load, t % 2));
  for (auto& one : loading) BOOST_TEST(one.get() == 0u);
  BOOST_TEST(host->report().read_first == 6 * kPart);
  BOOST_TEST(host->report().read_again == 0u);
}

BOOST_AUTO_TEST_CASE(those_who_hold_and_want_more_than_there_is_are_told_and_do_not_wait_for_ever) {
  write(4);
  make(2 * kPart, 2 * kPart);
  std::promise<void> first_holds, second_holds;
  const auto load = [&](std::size_t own, std::size_t other, std::promise<void>& mine,
                        std::promise<void>& theirs) {
    const auto held = get(part(own), fake());
    mine.set_value();
    theirs.get_future().wait();
    return test::error_of([&] { get(part(other), fake()); }).code();
  };
  auto second =
      std::async(std::launch::async, load, 1, 3, std::ref(second_holds), std::ref(first_holds));
  const engine::Code one = load(0, 2, first_holds, second_holds), two = second.get();
  // The one who is told gives its own back, and the other one may have that.
  BOOST_TEST(int(one == engine::Code::out_of_memory) + int(two == engine::Code::out_of_memory) >=
             1);
}

BOOST_AUTO_TEST_CASE(what_is_expected_is_read_before_anybody_asks) {
  write(6);
  make(8 * kPart, 8 * kPart, 0, 2);
  std::promise<void> all_read;
  std::uint64_t bytes = 0;
  const engine::Expectation once =
      host->expect(all(), engine::UseOrder::once, fake(), [&](const engine::FileRead& read) {
        const std::lock_guard lock(mutex);
        bytes += read.bytes;
        if (bytes == 6 * kPart) all_read.set_value();
      });
  all_read.get_future().wait();  // nobody has asked for anything
  for (std::size_t i = 0; i < 6; ++i) BOOST_TEST(use(i, fake()));
  BOOST_TEST(host->report().read_first == 6 * kPart);
  BOOST_TEST(host->report().read_again == 0u);
}

BOOST_AUTO_TEST_CASE(
    reading_ahead_lets_go_of_what_is_wanted_later_and_never_of_what_is_wanted_sooner) {
  write(16);
  make(12 * kPart, 12 * kPart, 0, 2);
  const engine::Expectation cycle = host->expect(all(), engine::UseOrder::cyclic, fake());
  for (int round = 0; round < 10; ++round)
    for (std::size_t i = 0; i < 16; ++i) BOOST_TEST(use(i, fake()));
  const engine::HostReport report = host->report();
  BOOST_TEST(report.peak <= 12 * kPart);
  BOOST_TEST(report.read_first == 16 * kPart);
  // Two of the twelve are for what comes next: ten of sixteen are found in each round. Were that
  // the next twelve, none would be.
  BOOST_TEST(report.read_again <= 9 * 7 * kPart);
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_read_ahead_is_an_error_for_who_asks_only) {
  write(4);
  make(8 * kPart, 8 * kPart, 0, 2);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - kPart);
  engine::Expectation once = host->expect(all(), engine::UseOrder::once, fake());
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(use(i, fake()));
  BOOST_TEST((test::error_of([&] { get(part(3), fake()); }).code() == engine::Code::io));
  once.end();
  BOOST_TEST(host->report().read_first >= 3 * kPart);
  host.reset();
  BOOST_TEST(room->held() == 0u);
}

BOOST_AUTO_TEST_CASE(what_was_let_go_for_others_is_left_to_them_until_somebody_asks) {
  write(6);
  make(4 * kPart, 4 * kPart, 0, 2);
  const engine::Expectation cycle = host->expect(all(), engine::UseOrder::cyclic, fake());
  for (int round = 0; round < 20; ++round) {
    BOOST_TEST(use(std::size_t(round) % 6, fake()));
    host->evict(3 * kPart);
    BOOST_TEST(room->reserve(3 * kPart).has_value());  // before anything is read ahead into it
  }
}

BOOST_AUTO_TEST_CASE(what_later_work_wants_is_read_behind_all_that_work_under_way_wants) {
  write(8);
  for (const bool is_used : {true, false})
    for (const auto& reader : {cpu(), fake()}) {
      make(16 * kPart, 8 * kPart, 2 * kPart, 1);
      reads.clear();
      watched_bytes = 0;
      const std::vector<engine::FilePart> parts = all();
      std::promise<void> all_read;
      const engine::ReadWatch watch = [&, note = note_reads()](const engine::FileRead& read) {
        note(read);
        const std::lock_guard lock(mutex);
        if (watched_bytes == 8 * kPart) all_read.set_value();
      };
      {
        const engine::Expectation now =
            host->expect({parts.data(), 4}, engine::UseOrder::cyclic, reader, watch);
        const engine::Expectation later = host->expect_later({parts.data() + 4, 4}, reader, watch);
        all_read.get_future().wait();  // nobody has asked for anything
        BOOST_TEST(reads == (Names{"0", "1", "2", "3", "4", "5", "6", "7"}),
                   boost::test_tools::per_element());
        for (std::size_t i = 0; is_used && i < 8; ++i) BOOST_TEST(use(i, reader));
      }
      BOOST_TEST(host->report().read_first == 8 * kPart);
      BOOST_TEST(host->report().read_again == 0u);
      // What nobody has used goes with who expected it; what a cycle reads is wanted once more.
      if (!is_used) BOOST_TEST(host->report().held <= 4 * kPart);
    }
}

// Of a file that might be held, room for four of its twelve parts.
BOOST_AUTO_TEST_CASE(what_later_work_wants_takes_no_room_from_work_under_way) {
  write(12);
  const std::vector<engine::FilePart> parts = all();
  const auto make_narrow = [&] {
    make(12 * kPart + 2 * engine::page_bytes(), 4 * kPart, 0, 2);
    return room->reserve(8 * kPart);
  };
  for (const auto& reader : {cpu(), fake()}) {
    const auto others = make_narrow();
    BOOST_TEST_REQUIRE(others.has_value());
    reads.clear();
    const engine::Expectation now =
        host->expect({parts.data(), 6}, engine::UseOrder::cyclic, reader, note_reads());
    const engine::Expectation later =
        host->expect_later({parts.data() + 6, 6}, reader, note_reads());
    for (int round = 0; round < 10; ++round)
      for (std::size_t i = 0; i < 6; ++i) BOOST_TEST(use(i, reader));
    const std::lock_guard lock(mutex);
    BOOST_TEST(std::ranges::none_of(reads, [](const auto& name) { return std::stoi(name) >= 6; }));
  }
  // What was read for later work goes for whoever asks now.
  const auto others = make_narrow();
  std::promise<void> is_full;
  std::uint64_t bytes = 0;
  const engine::Expectation later =
      host->expect_later({parts.data(), 6}, cpu(), [&](const engine::FileRead& read) {
        const std::lock_guard lock(mutex);
        bytes += read.bytes;
        if (bytes == 3 * kPart) is_full.set_value();  // room for one more is left
      });
  is_full.get_future().wait();
  for (std::size_t i = 8; i < 12; ++i) BOOST_TEST(use(i, cpu()));
  BOOST_TEST(use(0, cpu()));
  BOOST_TEST(host->report().peak <= 12 * kPart + 2 * engine::page_bytes());
}

// There is room for all of it beside what an earlier run has left; to be pinned, one by one, it
// takes room for one more.
BOOST_AUTO_TEST_CASE(what_was_read_for_later_work_is_pinned_when_that_streams_it) {
  write(12);
  make(12 * kPart + 2 * engine::page_bytes(), 8 * kPart, 0, 2);
  const std::vector<engine::FilePart> parts = all();
  {
    const engine::Expectation earlier =
        host->expect({parts.data() + 8, 4}, engine::UseOrder::cyclic, cpu());
    for (std::size_t i = 8; i < 12; ++i) BOOST_TEST(use(i, cpu()));
  }
  BOOST_TEST(host->report().held == 4 * kPart);
  std::promise<void> is_read;
  std::uint64_t bytes = 0;
  const engine::Expectation later =
      host->expect_later({parts.data(), 8}, fake(), [&](const engine::FileRead& read) {
        const std::lock_guard lock(mutex);
        bytes += read.bytes;
        if (bytes == 8 * kPart) is_read.set_value();
      });
  is_read.get_future().wait();
  BOOST_TEST(host->report().pinned == 0u);
  const engine::Expectation cycle =
      host->expect({parts.data(), 8}, engine::UseOrder::cyclic, fake());
  // Threads are in each other's way at times: then it is done in another round.
  for (int round = 0; round < 200 && host->report().pinned < 8 * kPart; ++round)
    for (std::size_t i = 0; i < 8; ++i) BOOST_TEST(use(i, fake()));
  BOOST_TEST(host->report().pinned == 8 * kPart);
  BOOST_TEST(host->report().read_again <= kPart);  // one that was given up half read
}

BOOST_AUTO_TEST_CASE(expectations_may_end_while_their_parts_are_read) {
  write(12);
  make(6 * kPart, 3 * kPart, kPart, 2);
  for (int round = 0; round < 50; ++round) {
    engine::Expectation once =
        host->expect(all(), engine::UseOrder::once, round % 2 == 0 ? fake() : cpu(), note_reads());
    BOOST_TEST(use(std::size_t(round) % 12, fake(1)));
  }
  BOOST_TEST(host->report().peak <= 6 * kPart);
}

BOOST_AUTO_TEST_SUITE_END()
