#include "engine/program/layout.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <numeric>
#include <random>

using heddle::engine::lay_out;
using heddle::engine::Layout;
using heddle::engine::Lifetime;

namespace {

bool overlap(const Lifetime& a, const Lifetime& b) {
  const bool are_apart = a.lane >= 0 && b.lane >= 0 && a.lane != b.lane;
  return are_apart || (a.first <= b.last && b.first <= a.last);
}

// No two pieces that live at the same time share a byte, and every piece lies inside the arena.
void check(const std::vector<Lifetime>& pieces, const Layout& layout) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    BOOST_TEST_REQUIRE(layout.offsets[i] + pieces[i].bytes <= layout.bytes);
    for (std::size_t j = 0; j < i; ++j)
      if (overlap(pieces[i], pieces[j]) && pieces[i].bytes > 0 && pieces[j].bytes > 0)
        BOOST_TEST_REQUIRE((layout.offsets[i] + pieces[i].bytes <= layout.offsets[j] ||
                            layout.offsets[j] + pieces[j].bytes <= layout.offsets[i]));
  }
}

// The lowest free offset of each, the largest first, by looking at all the others.
std::vector<std::uint64_t> plain_offsets(const std::vector<Lifetime>& pieces) {
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return pieces[i].bytes; });
  std::vector<std::uint64_t> offsets(pieces.size());
  std::vector<std::size_t> placed;
  for (const std::size_t i : order) {
    const auto is_free = [&](std::uint64_t at) {
      return std::ranges::none_of(placed, [&](std::size_t j) {
        return overlap(pieces[i], pieces[j]) && at < offsets[j] + pieces[j].bytes &&
               offsets[j] < at + pieces[i].bytes;
      });
    };
    std::vector<std::uint64_t> candidates{0};
    for (const std::size_t j : placed) candidates.push_back(offsets[j] + pieces[j].bytes);
    std::ranges::sort(candidates);
    offsets[i] = *std::ranges::find_if(candidates, is_free);
    placed.push_back(i);
  }
  return offsets;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layout)

BOOST_AUTO_TEST_CASE(each_piece_is_at_the_lowest_offset_that_is_free) {
  std::mt19937 random(5);
  for (const std::uint32_t steps : {1u, 7u, 63u, 64u, 65u, 5000u}) {
    std::vector<Lifetime> pieces;
    for (int i = 0; i < 200; ++i) {
      const std::uint32_t first = random() % steps;
      const std::uint32_t longest = i % 9 == 0 ? steps - first : std::min(steps - first, 5u);
      pieces.push_back(
          {64 * (1 + random() % 50), first, first + std::uint32_t(random() % longest)});
    }
    BOOST_TEST(lay_out(pieces, 64).offsets == plain_offsets(pieces),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(pieces_of_two_lanes_share_nothing_and_those_of_none_what_is_free) {
  std::mt19937 random(7);
  std::vector<Lifetime> pieces;
  for (std::uint32_t i = 0; i < 150; ++i)
    pieces.push_back({64 * (1 + random() % 50), i, i + 3, std::int32_t(i % 3) - 1});
  const Layout layout = lay_out(pieces, 64);
  check(pieces, layout);
  BOOST_TEST(layout.offsets == plain_offsets(pieces), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_chain_needs_room_for_two) {
  std::vector<Lifetime> pieces;
  for (std::uint32_t i = 0; i < 40; ++i) pieces.push_back({1024, i, i + 1});
  const Layout layout = lay_out(pieces, 256);
  check(pieces, layout);
  BOOST_TEST(layout.bytes == 2048u);
}

BOOST_AUTO_TEST_CASE(offsets_are_aligned_and_empty_pieces_take_nothing) {
  const std::vector<Lifetime> pieces{{100, 0, 3}, {0, 0, 3}, {1, 1, 2}, {300, 2, 3}};
  const Layout layout = lay_out(pieces, 256);
  check(pieces, layout);
  for (const std::uint64_t offset : layout.offsets) BOOST_TEST(offset % 256 == 0u);
  BOOST_TEST(layout.bytes == 1024u);
}

BOOST_AUTO_TEST_CASE(random_lifetimes_never_collide_and_stay_near_the_lower_bound) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> pieces;
    for (int i = 0; i < 60; ++i) {
      const std::uint32_t first = random() % 100;
      pieces.push_back({random() % 5000, first, first + std::uint32_t(random() % 20)});
    }
    const Layout layout = lay_out(pieces, 64);
    check(pieces, layout);
    std::uint64_t bound = 0;
    for (std::uint32_t step = 0; step < 120; ++step) {
      std::uint64_t alive = 0;
      for (const Lifetime& p : pieces)
        if (p.first <= step && step <= p.last) alive += (p.bytes + 63) / 64 * 64;
      bound = std::max(bound, alive);
    }
    BOOST_TEST(layout.bytes <= bound + bound / 3);
  }
}

BOOST_AUTO_TEST_SUITE_END()
