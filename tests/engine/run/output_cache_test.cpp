#include "engine/run/output_cache.h"

#include <boost/test/unit_test.hpp>

using namespace heddle::core;

namespace {

Hash128 key(std::uint64_t n) { return Hasher().add(n).finish(); }

CachedOutputs text(std::size_t bytes) { return {{make_value(std::string(bytes, 'x'))}, {}}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(output_cache)

BOOST_AUTO_TEST_CASE(what_was_added_is_found) {
  OutputCache cache(1 << 20);
  cache.add(key(1), text(10), 1.0);
  BOOST_TEST_REQUIRE((cache.find(key(1)) != nullptr));
  BOOST_TEST(get_str(*cache.find(key(1))->outputs[0]).size() == 10u);
  BOOST_TEST((cache.find(key(2)) == nullptr));
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

BOOST_AUTO_TEST_CASE(clearing_gives_all_bytes_back) {
  OutputCache cache(1 << 20);
  for (std::uint64_t i = 0; i < 100; ++i) cache.add(key(i), text(100), 1.0);
  cache.clear();
  BOOST_TEST(cache.bytes() == 0u);
  BOOST_TEST(cache.size() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
