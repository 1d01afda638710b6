#include "engine/memory/read_queue.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "engine/base/mapped_file.h"

BOOST_AUTO_TEST_SUITE(read_queue)

namespace {

using namespace heddle::engine;

struct Queued {
  const std::uint64_t page = page_bytes();
  ReadQueue queue{2 * page};
  HostItem first, second;

  Queued() {
    for (HostItem* item : {&first, &second}) {
      item->offset = page / 2;
      item->bytes = 4 * page;
    }
  }
  std::vector<std::uint64_t> ends_of(const HostItem& item) {
    std::vector<std::uint64_t> ends;
    while (const auto piece = queue.next(&item)) ends.push_back(piece->end);
    return ends;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(what_somebody_waits_for_is_read_before_what_is_read_ahead, Queued) {
  queue.add(first, first.pages, ReadPriority::ahead);
  queue.add(second, second.pages, ReadPriority::now);
  BOOST_TEST(queue.next()->item == &second);
  queue.remove(second.pages);
  BOOST_TEST(queue.next()->item == &first);
}

BOOST_FIXTURE_TEST_CASE(pieces_end_at_pages_of_the_file_and_none_is_left_over, Queued) {
  queue.add(first, first.pages, ReadPriority::now);
  // Half a page would be left over: it goes with the one before.
  const std::vector<std::uint64_t> ends{page + page / 2, 4 * page};
  BOOST_TEST(ends_of(first) == ends, boost::test_tools::per_element());
  BOOST_TEST(first.pages.reading == 2u);
  BOOST_TEST(queue.empty());
}

BOOST_FIXTURE_TEST_CASE(only_what_nobody_reads_or_waits_for_is_abandoned, Queued) {
  queue.add(first, first.pages, ReadPriority::now);
  queue.add(second, second.pages, ReadPriority::ahead);
  first.pages.leases = 1;
  BOOST_TEST_REQUIRE(queue.next(&second).has_value());
  BOOST_TEST(!queue.abandon_one().has_value());
  second.pages.reading = 0;
  const auto abandoned = queue.abandon_one();
  BOOST_TEST_REQUIRE(abandoned.has_value());
  BOOST_TEST(abandoned->second == &second.pages);
  BOOST_TEST(queue.next()->item == &first);
}

BOOST_FIXTURE_TEST_CASE(those_who_read_at_the_same_time_have_lanes_of_their_own, Queued) {
  BOOST_TEST(queue.begin_reading() == 0u);
  BOOST_TEST(queue.begin_reading() == 1u);
  queue.end_reading(0);
  BOOST_TEST(queue.begin_reading() == 0u);
  BOOST_TEST(queue.reading() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
