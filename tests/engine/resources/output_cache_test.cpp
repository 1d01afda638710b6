#include "engine/resources/output_cache.h"

#include <array>
#include <boost/test/unit_test.hpp>

#include "engine/tensor/shape.h"

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(output_cache)

namespace {

Hash128 key(std::uint64_t n) { return Hasher().add(n).finish(); }

std::vector<Value> text(std::size_t bytes) { return {make_value(std::string(bytes, 'x'))}; }

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_added_is_found) {
  OutputCache cache(1 << 20);
  cache.add(key(1), text(10), 1.0);
  cache.add(key(3), {}, 1.0);
  const OutputCache::Reading reading = cache.read();
  BOOST_TEST_REQUIRE(reading.find(key(1)).has_value());
  BOOST_TEST_REQUIRE(reading.find(key(1))->size() == 1u);
  BOOST_TEST(get_str(*reading.find(key(1))->front()).size() == 10u);
  BOOST_TEST(!reading.find(key(2)).has_value());
  BOOST_TEST_REQUIRE(reading.find(key(3)).has_value());  // a node without outputs
  BOOST_TEST(reading.find(key(3))->empty());
}

BOOST_AUTO_TEST_CASE(the_cheapest_to_make_for_its_bytes_goes_first) {
  OutputCache cache(10000);
  cache.add(key(1), text(3000), 9.0);
  cache.add(key(2), text(3000), 0.1);
  cache.add(key(3), text(3000), 5.0);
  cache.add(key(4), text(3000), 1.0);
  BOOST_TEST(cache.contains(key(1)));
  BOOST_TEST(!cache.contains(key(2)));
  BOOST_TEST(cache.contains(key(3)));
  BOOST_TEST(cache.contains(key(4)));
  BOOST_TEST(cache.bytes() <= 10000u);
}

BOOST_AUTO_TEST_CASE(what_exceeds_the_limit_alone_is_not_kept_and_displaces_nothing) {
  OutputCache cache(10000);
  cache.add(key(1), text(3000), 0.001);
  cache.add(key(2), text(20000), 100.0);
  BOOST_TEST(cache.contains(key(1)));
  BOOST_TEST(!cache.contains(key(2)));
}

BOOST_AUTO_TEST_CASE(among_equals_the_one_that_was_not_used_for_longest_goes_first) {
  OutputCache cache(10000);
  for (std::uint64_t i = 1; i <= 3; ++i) cache.add(key(i), text(2900), 1.0);
  BOOST_TEST(cache.read().find(key(1)).has_value());
  cache.add(key(4), text(2900), 1.0);
  BOOST_TEST(!cache.contains(key(2)));
  BOOST_TEST(cache.read().find(key(3)).has_value());
  cache.add(key(5), text(2900), 1.0);
  BOOST_TEST(!cache.contains(key(1)));
  BOOST_TEST(cache.contains(key(3)));
  BOOST_TEST(cache.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_full_cache_stays_full_of_what_is_worth_most) {
  OutputCache cache(100 * (256 + 10));
  for (std::uint64_t i = 0; i < 5000; ++i) cache.add(key(i), text(10), double((i * 7919) % 5000));
  BOOST_TEST(cache.size() == 100u);
  for (std::uint64_t i = 0; i < 4999; ++i)
    if ((i * 7919) % 5000 >= 4901) BOOST_TEST(cache.contains(key(i)));
}

BOOST_AUTO_TEST_CASE(what_is_small_waits_until_it_is_flushed) {
  OutputCache cache(1 << 20);
  OutputCache::Adding adding(cache);
  const std::vector<Value> two = {make_value(std::int64_t{5}), make_value(std::int64_t{6})};
  adding.add(key(1), two, 1.0);
  adding.add(key(2), text(10), 1.0);
  BOOST_TEST(!adding.is_empty());
  BOOST_TEST(cache.size() == 0u);
  adding.flush();
  BOOST_TEST(adding.is_empty());
  const OutputCache::Reading reading = cache.read();
  BOOST_TEST_REQUIRE(reading.find(key(1)).has_value());
  BOOST_TEST_REQUIRE(reading.find(key(1))->size() == 2u);
  BOOST_TEST((*reading.find(key(1)))[0].get() == two[0].get());
  BOOST_TEST(get_int(*(*reading.find(key(1)))[1]) == 6);
  BOOST_TEST_REQUIRE(reading.find(key(2)).has_value());
  BOOST_TEST(get_str(*reading.find(key(2))->front()).size() == 10u);
}

BOOST_AUTO_TEST_CASE(what_is_large_never_waits) {
  OutputCache cache(10000);
  OutputCache::Adding adding(cache);
  adding.add(key(1), text(3000), 1.0);
  BOOST_TEST(cache.contains(key(1)));
  adding.add(key(2), text(20000), 1.0);  // more than the cache holds at all
  BOOST_TEST(adding.is_empty());
  BOOST_TEST(!cache.contains(key(2)));
}

BOOST_AUTO_TEST_CASE(what_waits_is_added_at_the_end_and_before_there_is_much_of_it) {
  OutputCache cache(1 << 20);
  {
    OutputCache::Adding adding(cache);
    for (std::uint64_t i = 0; i < 1000; ++i) adding.add(key(i), text(1), 1.0);
    BOOST_TEST(cache.size() >= 900u);
    BOOST_TEST(cache.size() < 1000u);
  }
  BOOST_TEST(cache.size() == 1000u);
}

BOOST_AUTO_TEST_CASE(shares_of_what_waits_are_counted_like_all_others) {
  OutputCache cache(1 << 20);
  Value value = make_value(std::int64_t{5});
  const Value mine = value;
  {
    OutputCache::Adding adding(cache);
    adding.add(key(1), {&value, 1}, 1.0);
    Value alone = make_value(std::int64_t{6});
    adding.add(key(2), {&alone, 1}, 1.0);
    BOOST_TEST(alone->refs.load() == 2u);
  }
  BOOST_TEST(mine->refs.load() == 3u);
  cache.clear();
  BOOST_TEST(mine->refs.load() == 2u);
}

BOOST_AUTO_TEST_CASE(clearing_gives_all_bytes_back) {
  OutputCache cache(1 << 20);
  for (std::uint64_t i = 0; i < 100; ++i) cache.add(key(i), text(100), 1.0);
  cache.clear();
  BOOST_TEST(cache.bytes() == 0u);
  BOOST_TEST(cache.size() == 0u);
}

BOOST_AUTO_TEST_CASE(room_is_made_of_what_is_cheapest_to_make_again_and_no_more_than_is_wanted) {
  OutputCache cache(1 << 20);
  const auto tensor = [](std::int64_t floats) {
    return make_value(make_host_tensor(make_info(HEDDLE_F32, std::array<std::int64_t, 1>{floats})));
  };
  cache.add(key(1), std::array{tensor(100)}, 9.0);
  cache.add(key(2), std::array{tensor(100)}, 0.1);
  const Value shared = tensor(100);
  cache.add(key(3), std::array{shared}, 5.0);  // made
  cache.add(key(4), std::array{shared}, 0.0);  // passed on
  cache.add(key(5), text(400), 0.0);           // holds nothing there
  const auto there = [&](const Value& value, std::uint32_t shares) -> std::uint64_t {
    const std::uint32_t ours = value == shared ? 1 : 0;
    return value->refs.load() - ours == shares ? 400 : 0;
  };
  std::vector<Value> asked;
  const auto dropped = [&](const Value& value) {
    asked.push_back(value);
    return Value();
  };
  BOOST_TEST(cache.make_room(0, there, dropped) == 0u);
  BOOST_TEST(cache.make_room(401, there, dropped) == 800u);
  BOOST_TEST(asked.size() == 2u);
  BOOST_TEST(cache.contains(key(1)));
  for (const std::uint64_t gone : {2, 3, 4}) BOOST_TEST(!cache.contains(key(gone)));
  BOOST_TEST(cache.contains(key(5)));
  // The same contents elsewhere are kept in its place.
  const Value elsewhere = tensor(100);
  BOOST_TEST(cache.make_room(1, there, [&](const Value&) { return elsewhere; }) == 400u);
  BOOST_TEST((cache.read().find(key(1))->front() == elsewhere));
  const std::uint64_t bytes = cache.bytes();
  for (std::uint64_t i = 10; i < 20; ++i) cache.add(key(i), text(200), 1.0);
  BOOST_TEST(cache.bytes() > bytes);
}

BOOST_AUTO_TEST_SUITE_END()
