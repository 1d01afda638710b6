// How figures of a plan are written.
#include "engine/explain/plan_text.h"

#include <boost/test/unit_test.hpp>

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(plan_figures)

BOOST_AUTO_TEST_CASE(times_have_three_digits_and_the_unit_that_suits_them) {
  BOOST_TEST(format_seconds(0) == "0 s");
  BOOST_TEST(format_seconds(1.234) == "1.23 s");
  BOOST_TEST(format_seconds(123.4) == "123 s");
  BOOST_TEST(format_seconds(0.9996) == "1.00 s");
  BOOST_TEST(format_seconds(0.9994) == "999 ms");
  BOOST_TEST(format_seconds(0.0456) == "45.6 ms");
  BOOST_TEST(format_seconds(789e-6) == "789 us");
  BOOST_TEST(format_seconds(0.5e-6) == "0.50 us");
}

BOOST_AUTO_TEST_CASE(bytes_that_nobody_knows_are_not_a_number) {
  BOOST_TEST(step_bytes_text(64 << 10) == "64.0 KiB");
  BOOST_TEST(step_bytes_text(kUnknownBytes) == "unknown size");
}

BOOST_AUTO_TEST_SUITE_END()
