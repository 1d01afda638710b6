#include "engine/base/hash.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <unordered_set>
#include <vector>

using namespace heddle::engine;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hash_test)

// The values are those of `xxhsum -H2` (xxHash 0.8.1).
BOOST_AUTO_TEST_CASE(hash_of_bytes_is_xxh3_128) {
  BOOST_TEST(hex(hash_bytes({})) == "99aa06d3014798d86001c324468d497f");
  BOOST_TEST(hex(hash_bytes(bytes_of("abc"))) == "06b05ab6733a618578af5f94892f3950");
}

BOOST_AUTO_TEST_CASE(cutting_bytes_makes_no_difference) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  Hasher hasher;
  std::size_t at = 0;
  for (std::size_t step = 1; at < text.size(); step = step * 3 % 101) {
    const std::size_t size = std::min(step, text.size() - at);
    hasher.add(bytes_of(text).subspan(at, size));
    at += size;
  }
  BOOST_TEST(hex(hasher.finish()) == hex(hash_bytes(bytes_of(text))));
}

BOOST_AUTO_TEST_CASE(neighbouring_texts_do_not_run_together) {
  BOOST_TEST((Hasher().add("ab").add("c").finish() != Hasher().add("a").add("bc").finish()));
  BOOST_TEST((Hasher().add("").add("a").finish() != Hasher().add("a").add("").finish()));
}

BOOST_AUTO_TEST_CASE(integers_hash_by_value_not_by_type) {
  BOOST_TEST((Hasher().add(7).finish() == Hasher().add(std::uint64_t{7}).finish()));
  BOOST_TEST((Hasher().add(-1).finish() == Hasher().add(std::int64_t{-1}).finish()));
  BOOST_TEST((Hasher().add(1).add(2).finish() != Hasher().add(2).add(1).finish()));
  BOOST_TEST((Hasher().add(1.0).finish() != Hasher().add(1).finish()));
}

// Keys are kept on disk, so what they are made of must not change unnoticed.
BOOST_AUTO_TEST_CASE(mixed_input_has_the_same_hash_for_ever) {
  const Hash128 hash =
      Hasher().add("node").add(42).add(0.5).add(Hash128{.lo = 1, .hi = 2}).finish();
  // struct.pack("<Q4sQdQQ", 4, b"node", 42, 0.5, 1, 2) of Python, through `xxhsum -H2`
  BOOST_TEST(hex(hash) == "e96a0a1708b8c2f3cea87c2ae47eed04");
}

BOOST_AUTO_TEST_CASE(finish_may_be_called_in_between) {
  Hasher hasher;
  hasher.add("a");
  const Hash128 first = hasher.finish();
  BOOST_TEST((hasher.finish() == first));
  hasher.add("b");
  BOOST_TEST((hasher.finish() == Hasher().add("a").add("b").finish()));
}

BOOST_AUTO_TEST_CASE(hashes_work_as_keys) {
  std::unordered_set<Hash128> keys;
  for (int i = 0; i < 1000; ++i) keys.insert(Hasher().add(i).finish());
  BOOST_TEST(keys.size() == 1000u);
  BOOST_TEST(hex(Hash128{.lo = 0x1, .hi = 0xab}) == "00000000000000ab0000000000000001");
}

BOOST_AUTO_TEST_SUITE_END()
