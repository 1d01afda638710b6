// heddle/checked.hpp at the ends of what fits.
#include <heddle/checked.hpp>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

namespace {

using heddle::checked_cast;
using heddle::checked_product;
using heddle::checked_round;
using heddle::checked_sum;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

// The message of the refusal; "" where nothing is refused.
template <class F>
std::string refusal_of_sizes(F&& compute) {
  try {
    compute();
  } catch (const heddle::Error& error) {
    BOOST_TEST(error.code == HEDDLE_INVALID_ARGUMENT);
    return error.what();
  }
  return "";
}
template <class To, class From>
bool fits(From value) {
  return refusal_of_sizes([&] { checked_cast<To>(value, "it"); }).empty();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checked)

BOOST_AUTO_TEST_CASE(integers_are_narrowed_when_they_fit) {
  BOOST_TEST(checked_cast<std::int32_t>(std::int64_t{2147483647}, "it") == 2147483647);
  BOOST_TEST(checked_cast<std::int32_t>(std::int64_t{-2147483647} - 1, "it") ==
             std::numeric_limits<std::int32_t>::min());
  BOOST_TEST(!fits<std::int32_t>(std::int64_t{2147483648}));
  BOOST_TEST(!fits<std::int32_t>(kLeast));
  BOOST_TEST(!fits<std::uint32_t>(std::int64_t{-1}));
  BOOST_TEST(!fits<std::uint64_t>(std::int64_t{-1}));
  BOOST_TEST(!fits<std::int64_t>(std::uint64_t{1} << 63));
  BOOST_TEST(fits<std::uint64_t>(kMost));
  BOOST_TEST(refusal_of_sizes([] { checked_cast<int>(std::int64_t{4294967298}, "steps"); }) ==
             "steps: 4294967298 does not fit, it has to be from -2147483648 to 2147483647");
}

BOOST_AUTO_TEST_CASE(numbers_are_cut_off_when_they_fit) {
  BOOST_TEST(checked_cast<int>(2.9, "it") == 2);
  BOOST_TEST(checked_cast<int>(-2.9, "it") == -2);
  BOOST_TEST(checked_cast<int>(2147483647.5, "it") == 2147483647);
  BOOST_TEST(!fits<int>(2147483648.0));
  BOOST_TEST(checked_cast<std::uint32_t>(-0.5, "it") == 0u);
  BOOST_TEST(!fits<std::uint32_t>(-1.0));
  BOOST_TEST(fits<std::int64_t>(-9223372036854775808.0));
  BOOST_TEST(!fits<std::int64_t>(9223372036854775808.0));
  BOOST_TEST(fits<std::uint64_t>(9223372036854775808.0));
  BOOST_TEST(!fits<std::uint64_t>(18446744073709551616.0));
  for (const double odd : {std::nan(""), std::numeric_limits<double>::infinity(), -1e300, 1e300})
    BOOST_TEST(!fits<std::int64_t>(odd), odd);
  BOOST_TEST(!fits<int>(std::numeric_limits<float>::infinity()));
}

BOOST_AUTO_TEST_CASE(halves_are_rounded_to_the_even_number) {
  BOOST_TEST(checked_round(0.5, "it") == 0);
  BOOST_TEST(checked_round(1.5, "it") == 2);
  BOOST_TEST(checked_round(-2.4, "it") == -2);
  BOOST_TEST(refusal_of_sizes([] {
               checked_round(1e300, "height");
             }).starts_with("height: 1.0000000000000001e+300 does not fit"));
}

BOOST_AUTO_TEST_CASE(sums_and_products_are_right_or_refused) {
  BOOST_TEST(checked_sum({}, "it") == 0);
  BOOST_TEST(checked_sum({kMost, -1, 1}, "it") == kMost);
  BOOST_TEST(checked_sum({kLeast, kMost}, "it") == -1);
  BOOST_TEST(refusal_of_sizes([] {
               checked_sum({kMost, 1}, "width");
             }) == "width: 9223372036854775807 + 1 exceeds 64 bits. Give smaller numbers");
  BOOST_TEST(checked_product({}, "it") == 1);
  BOOST_TEST(checked_product({kMost, 1}, "it") == kMost);
  BOOST_TEST(checked_product({kLeast, 1}, "it") == kLeast);
  BOOST_TEST(checked_product({std::int64_t{1} << 31, std::int64_t{1} << 31}, "it") ==
             std::int64_t{1} << 62);
  BOOST_TEST(checked_product({kMost, 0}, "it") == 0);
  BOOST_TEST(refusal_of_sizes([] { checked_product({kLeast, -1}, "it"); }) != "");
  BOOST_TEST(refusal_of_sizes([] {
               checked_product({std::int64_t{1} << 32, 3, std::int64_t{1} << 31}, "pixels");
             }) == "pixels: 4294967296 x 3 x 2147483648 exceeds 64 bits. Give smaller numbers");
}

BOOST_AUTO_TEST_SUITE_END()
