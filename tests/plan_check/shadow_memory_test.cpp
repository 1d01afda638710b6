// The memory of the checks of plans tells what two actors do without knowing of each other.
#include "engine/program/shadow_memory.h"

#include <boost/test/unit_test.hpp>

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(shadow_memory)

namespace {

// Of two actors: what each knows of the other's moments.
const VectorClock first = {1, 0}, second = {0, 1}, second_behind_first = {1, 1};

}  // namespace

BOOST_AUTO_TEST_CASE(a_write_waits_for_who_wrote_before) {
  ShadowMemory memory;
  BOOST_TEST(memory.write({0, 64, 7, 0}, {{0, 1}, first, 1}) == "");
  BOOST_TEST(memory.write({32, 96, 8, 0}, {{1, 1}, second, 2}) ==
             "byte 32 is written without waiting for who wrote it before");
  BOOST_TEST(memory.write({32, 96, 8, 0}, {{1, 1}, second_behind_first, 2}) == "");
}

// Where a tensor without elements "lies", another one may.
BOOST_AUTO_TEST_CASE(nobody_waits_for_a_write_of_no_bytes) {
  ShadowMemory memory;
  BOOST_TEST(memory.write({64, 64, 7, 0}, {{0, 1}, first, 1}) == "");
  BOOST_TEST(memory.read(64, 64, {{0, 1}, first, 1}, nullptr) == "");
  BOOST_TEST(memory.write({64, 128, 8, 0}, {{1, 1}, second, 2}) == "");
  BOOST_TEST(memory.write({96, 96, 9, 0}, {{0, 1}, first, 1}) == "");
  std::vector<Piece> found;
  BOOST_TEST(memory.read(64, 128, {{1, 1}, second, 2}, &found) == "");
  BOOST_TEST(found.size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
