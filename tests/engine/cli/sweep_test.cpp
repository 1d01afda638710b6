#include "engine/cli/sweep.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/refusal.h"

namespace heddle::cli {
BOOST_AUTO_TEST_SUITE(sweep)

namespace {

using Values = std::vector<std::string>;

std::string refusal(std::string_view value, InputKind kind) {
  const engine::Error error = test::refusal_of([&] { values_of(value, kind); });
  BOOST_TEST((error.code() == engine::Code::invalid_argument));
  return error.what();
}

BOOST_AUTO_TEST_CASE(a_range_on_an_integer_has_both_ends) {
  BOOST_TEST(values_of("1..4", InputKind::integer) == (Values{"1", "2", "3", "4"}));
  BOOST_TEST(values_of("-1..1", InputKind::integer) == (Values{"-1", "0", "1"}));
  BOOST_TEST(values_of("7..7", InputKind::integer) == Values{"7"});
}

BOOST_AUTO_TEST_CASE(a_range_reaches_the_greatest_seed) {
  BOOST_TEST(values_of("18446744073709551614..18446744073709551615", InputKind::integer) ==
             (Values{"18446744073709551614", "18446744073709551615"}));
  BOOST_TEST(values_of("9223372036854775806..9223372036854775809", InputKind::integer) ==
             (Values{"9223372036854775806", "9223372036854775807", "9223372036854775808",
                     "9223372036854775809"}));
}

BOOST_AUTO_TEST_CASE(a_range_on_a_real_goes_in_steps_of_one) {
  BOOST_TEST(values_of("0.5..2.5", InputKind::real) == (Values{"0.5", "1.5", "2.5"}));
  BOOST_TEST(values_of("1..2", InputKind::real) == (Values{"1", "2"}));
  BOOST_TEST(values_of("0.1..2.1", InputKind::real).size() == 3u);
  BOOST_TEST(values_of("0..1.9", InputKind::real) == (Values{"0", "1"}));
}

BOOST_AUTO_TEST_CASE(a_list_of_numbers_is_taken_one_by_one) {
  BOOST_TEST(values_of("[3,5,8]", InputKind::integer) == (Values{"3", "5", "8"}));
  BOOST_TEST(values_of(" [ 1.5, 2 ] ", InputKind::real) == (Values{"1.5", "2"}));
  BOOST_TEST(values_of("[18446744073709551615]", InputKind::integer) ==
             Values{"18446744073709551615"});
}

BOOST_AUTO_TEST_CASE(inputs_that_are_no_numbers_take_their_value_whole) {
  BOOST_TEST(values_of("1..8", InputKind::other) == Values{"1..8"});
  BOOST_TEST(values_of("[3,5,8]", InputKind::other) == Values{"[3,5,8]"});
}

BOOST_AUTO_TEST_CASE(what_is_neither_a_range_nor_a_list_of_numbers_stays_whole) {
  for (const char* value : {"5", "0.5", "a..b", "1..", "..8", "1...5", "", "[\"4\", 0]", "[1,",
                            "{\"a\": 1}", "NaN..NaN", "1..Infinity"})
    BOOST_TEST(values_of(value, InputKind::integer) == Values{value});
}

BOOST_AUTO_TEST_CASE(wrong_ranges_say_what_is_wrong) {
  BOOST_TEST(refusal("8..1", InputKind::integer) ==
             "the range '8..1' is empty: write the smaller number first.");
  BOOST_TEST(refusal("2.5..1", InputKind::real).find("is empty") != std::string::npos);
  BOOST_TEST(refusal("0.5..3", InputKind::integer).find("whole numbers") != std::string::npos);
  BOOST_TEST(refusal("0..100000", InputKind::integer).find("100000 runs") != std::string::npos);
  BOOST_TEST(refusal("-5..18446744073709551615", InputKind::integer).find("100000 runs") !=
             std::string::npos);
  BOOST_TEST(refusal("0..1e300", InputKind::real).find("100000 runs") != std::string::npos);
  BOOST_TEST(refusal("[]", InputKind::integer).find("has no value") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_longest_range_has_as_many_runs_as_are_allowed) {
  BOOST_TEST(values_of("1..100000", InputKind::integer).size() == kMostRuns);
}

BOOST_AUTO_TEST_CASE(several_axes_make_every_combination_the_last_changing_fastest) {
  Sweep sweep;
  BOOST_TEST(sweep.runs() == 1u);
  BOOST_TEST(sweep.values(0) == Values{});
  sweep.add({"1", "2"});
  sweep.add({"a", "b", "c"});
  BOOST_REQUIRE_EQUAL(sweep.runs(), 6u);
  BOOST_TEST(sweep.values(0) == (Values{"1", "a"}));
  BOOST_TEST(sweep.values(2) == (Values{"1", "c"}));
  BOOST_TEST(sweep.values(3) == (Values{"2", "a"}));
  BOOST_TEST(sweep.values(5) == (Values{"2", "c"}));
}

BOOST_AUTO_TEST_CASE(the_declared_type_decides_what_is_a_number) {
  BOOST_TEST((kind_of_type("INT") == InputKind::integer));
  BOOST_TEST((kind_of_type("FLOAT") == InputKind::real));
  BOOST_TEST((kind_of_type("INT,FLOAT") == InputKind::real));
  for (const char* type : {"STRING", "COMBO", "POINT", "*", ""})
    BOOST_TEST((kind_of_type(type) == InputKind::other), type);
}

BOOST_AUTO_TEST_CASE(too_many_combinations_are_refused) {
  Sweep sweep;
  sweep.add(Values(1000, "x"));
  const engine::Error error = test::refusal_of([&] { sweep.add(Values(101, "y")); });
  BOOST_TEST((error.code() == engine::Code::invalid_argument));
  BOOST_TEST(sweep.runs() == 1000u);
  sweep.add(Values(100, "y"));
  BOOST_TEST(sweep.runs() == kMostRuns);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::cli
