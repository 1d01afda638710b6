#include "engine/memory/range_counts.h"

#include <boost/test/unit_test.hpp>
#include <random>

using heddle::engine::RangeCounts;
using Ranges = std::vector<RangeCounts::Range>;

BOOST_AUTO_TEST_SUITE(range_counts)

BOOST_AUTO_TEST_CASE(what_two_share_goes_with_the_second) {
  RangeCounts counts;
  BOOST_TEST((counts.add(0, 10) == Ranges{{0, 10}}));
  BOOST_TEST((counts.add(9, 20) == Ranges{{10, 20}}));
  BOOST_TEST(counts.missing(5, 25) == 5u);
  BOOST_TEST((counts.remove(0, 10) == Ranges{{0, 9}}));
  BOOST_TEST((counts.remove(9, 20) == Ranges{{9, 20}}));
  BOOST_TEST(counts.empty());
}

BOOST_AUTO_TEST_CASE(filling_counts_nothing_twice) {
  RangeCounts counts;
  counts.fill(10, 20);
  BOOST_TEST((counts.fill(5, 25) == Ranges{{5, 10}, {20, 25}}));
  BOOST_TEST(counts.fill(5, 25).empty());
}

BOOST_AUTO_TEST_CASE(random_ranges_are_counted_as_one_by_one) {
  std::mt19937 random(1);
  RangeCounts counts;
  std::vector<int> plain(64, 0);
  Ranges added;
  const auto check = [&](const Ranges& reported, const RangeCounts::Range& range, int count) {
    Ranges expected;
    for (std::uint64_t at = range.begin; at < range.end; ++at) {
      if (plain[at] != count) continue;
      if (!expected.empty() && expected.back().end == at)
        ++expected.back().end;
      else
        expected.push_back({at, at + 1});
    }
    BOOST_TEST((reported == expected));
  };
  for (int step = 0; step < 2000; ++step) {
    if (added.empty() || random() % 2 == 0) {
      const std::uint64_t begin = random() % 60, end = begin + random() % (64 - begin);
      added.push_back({begin, end});
      std::uint64_t missing = 0;
      for (std::uint64_t at = begin; at < end; ++at) missing += plain[at] == 0;
      BOOST_TEST(counts.missing(begin, end) == missing);
      const Ranges reported = counts.add(begin, end);
      for (std::uint64_t at = begin; at < end; ++at) ++plain[at];
      check(reported, added.back(), 1);
    } else {
      std::swap(added[random() % added.size()], added.back());
      const RangeCounts::Range range = added.back();
      added.pop_back();
      const Ranges reported = counts.remove(range.begin, range.end);
      for (std::uint64_t at = range.begin; at < range.end; ++at) --plain[at];
      check(reported, range, 0);
    }
  }
  for (const RangeCounts::Range& range : added) counts.remove(range.begin, range.end);
  BOOST_TEST(counts.empty());
}

BOOST_AUTO_TEST_SUITE_END()
