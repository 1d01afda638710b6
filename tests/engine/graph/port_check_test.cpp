// What a port lets through, value by value.
#include "engine/graph/port_check.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engine/base/text.h"
#include "tests/support/refusal.h"
#include "tests/support/test_nodes.h"

namespace heddle::engine {
BOOST_AUTO_TEST_SUITE(port_check)

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

Value whole(std::int64_t number) { return make_value(number); }

// What an input of this declaration says of a value; "" when it takes it.
std::string said(const char* type, const heddle_widget* widget, const Value& value,
                 std::uint32_t flags = 0, const Catalog* catalog = nullptr) {
  const heddle_port port{sizeof(heddle_port), flags, "in", type, "", widget};
  return PortCheck(port).fault_of(*value, catalog).value_or("");
}
std::string said_of_int(double least, double most, const Value& value) {
  const heddle_widget widget = test::int_widget(0, least, most);
  return said("INT", &widget, value);
}
std::string said_of_float(double least, double most, double value, std::uint32_t flags = 0) {
  const heddle_widget widget = test::float_widget(0, least, most);
  return said("FLOAT", &widget, make_value(value), flags);
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_integer_lies_within_both_ends) {
  for (const std::int64_t fine : {1, 2, 9999, 10000})
    BOOST_TEST(said_of_int(1, 10000, whole(fine)) == "", fine);
  BOOST_TEST(said_of_int(1, 10000, whole(0)) ==
             "0 is below the least value 1. Give a number from 1 to 10000.");
  BOOST_TEST(said_of_int(1, 10000, whole(4294967298)) ==
             "4294967298 is above the greatest value 10000. Give a number from 1 to 10000.");
  for (const Value& far : {make_value(kMost), make_value(kLeast),
                           make_value(std::numeric_limits<std::uint64_t>::max())})
    BOOST_TEST(said_of_int(1, 10000, far) != "");
}

BOOST_AUTO_TEST_CASE(integers_are_compared_as_integers_not_as_doubles) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  BOOST_TEST(said_of_int(-double(most), double(most), make_value(most)) == "");
  BOOST_TEST(said_of_int(-double(most), double(most), make_value(most + 1)) != "");
  BOOST_TEST(said_of_int(-double(most), double(most), make_value(-most - 1)) != "");
}

BOOST_AUTO_TEST_CASE(a_range_may_be_all_of_64_bits) {
  constexpr double end = 9223372036854775808.0;
  BOOST_TEST(said_of_int(-end, end, make_value(kMost)) == "");
  BOOST_TEST(said_of_int(-end, end, make_value(kLeast)) == "");
  BOOST_TEST(said_of_int(0, 0, make_value(kLeast)) == "");
  BOOST_TEST(said_of_int(0, 0, make_value(std::uint64_t{1} << 63)) != "");
  BOOST_TEST(said_of_int(-end, end, make_value(std::uint64_t{1} << 63)) ==
             "9223372036854775808 is above the greatest value 9223372036854775807. Give a number "
             "from -9223372036854775808 to 9223372036854775807.");
}

BOOST_AUTO_TEST_CASE(a_seed_is_any_number_of_64_bits_without_a_sign) {
  const heddle_widget seed = test::seed_widget();
  const auto of = [&](const Value& value) { return said("INT", &seed, value); };
  BOOST_TEST(of(whole(0)) == "");
  BOOST_TEST(of(make_value(kMost)) == "");
  BOOST_TEST(of(make_value(std::numeric_limits<std::uint64_t>::max())) == "");
  BOOST_TEST(of(whole(-1)) ==
             "-1 is below the least value 0. Give a number from 0 to 18446744073709551615.");
}

BOOST_AUTO_TEST_CASE(a_number_is_finite_and_within_both_ends) {
  for (const double fine : {0.0, 1e-300, 0.5, 1.0}) BOOST_TEST(said_of_float(0, 1, fine) == "");
  BOOST_TEST(said_of_float(0, 1, -1e-300) != "");
  BOOST_TEST(said_of_float(0, 1, std::nextafter(1.0, 2.0)) != "");
  BOOST_TEST(said_of_float(0, 1, kNaN) == "nan is not a finite number. Give a number from 0 to 1.");
  BOOST_TEST(said_of_float(0, 1, -kInf) ==
             "-inf is not a finite number. Give a number from 0 to 1.");
  // Without a range, too, and without a widget.
  BOOST_TEST(said_of_float(0, 0, 1e300) == "");
  BOOST_TEST(said_of_float(0, 0, kInf) == "inf is not a finite number. Give a number.");
  BOOST_TEST(said("FLOAT", nullptr, make_value(kNaN)) != "");
}

BOOST_AUTO_TEST_CASE(a_port_may_say_that_it_takes_nan_and_infinities) {
  for (const double odd : {kNaN, kInf, -kInf})
    BOOST_TEST(said_of_float(0, 1, odd, HEDDLE_PORT_NONFINITE) == "");
  BOOST_TEST(said_of_float(0, 1, 2, HEDDLE_PORT_NONFINITE) != "");
}

BOOST_AUTO_TEST_CASE(an_integer_will_do_for_a_number_within_its_range) {
  const heddle_widget widget = test::float_widget(0, 0.5, 1.5);
  BOOST_TEST(said("FLOAT", &widget, whole(1)) == "");
  BOOST_TEST(said("FLOAT", &widget, whole(0)) != "");
  BOOST_TEST(said("FLOAT", &widget, whole(2)) != "");
}

BOOST_AUTO_TEST_CASE(a_value_of_another_kind_is_refused) {
  const heddle_widget steps = test::int_widget(20, 1, 10000);
  BOOST_TEST(said("INT", &steps, make_value("many")) ==
             "expects INT, got the string 'many'. Give a whole number.");
  BOOST_TEST(said("INT", &steps, make_value(2.0)) ==
             "expects INT, got the number 2. Give a whole number.");
  BOOST_TEST(said("INT", nullptr, make_value(true)) ==
             "expects INT, got the boolean true. Give a whole number.");
  BOOST_TEST(said("FLOAT", nullptr, make_value("1")) != "");
  BOOST_TEST(said("STRING", nullptr, make_value(1.0)) != "");
  BOOST_TEST(said("BOOLEAN", nullptr, whole(1)) != "");
  BOOST_TEST(said("BOOLEAN", nullptr, make_value(false)) == "");
  // Types that name no kind take anything.
  for (const char* any : {"*", "LATENT", "INT,FLOAT"})
    BOOST_TEST(said(any, nullptr, make_value("x")) == "", any);
}

BOOST_AUTO_TEST_CASE(a_choice_is_one_of_the_port_s_own_and_of_those_that_plugins_bring) {
  struct Named {
    std::uint32_t size;
    const char* name;
  };
  static constexpr Named kNew{sizeof(Named), "newest"};
  Catalog catalog;
  catalog.add("test.samplers/0", Extension{&kNew, "p", nullptr});
  heddle_widget widget = test::choice_widget(test::kSamplers);
  const auto of = [&](const char* name, const Catalog* known) {
    return said("STRING", &widget, make_value(name), 0, known);
  };
  BOOST_TEST(of("heun", nullptr) == "");
  BOOST_TEST(of("newest", nullptr) != "");
  widget.source = "test.samplers/0";
  BOOST_TEST(of("newest", &catalog) == "");
  BOOST_TEST(of("heunn", &catalog) ==
             "'heunn' is not one of the choices. Did you mean 'heun'? Choices: 'euler', 'heun', "
             "'dpmpp_2m', 'newest'.");
  BOOST_TEST(of("heunn", nullptr) == "");  // nobody knows all of them
  BOOST_TEST(said("STRING", &widget, make_value(1.0), 0, &catalog) ==
             "expects a name, got the number 1. Give text.");
}

BOOST_AUTO_TEST_CASE(names_of_files_are_left_to_whoever_opens_them) {
  Catalog catalog;
  test::list_sample_files(catalog);
  const heddle_widget widget = test::source_widget(HEDDLE_WIDGET_FILE, "vae");
  BOOST_TEST(said("STRING", &widget, make_value("nowhere"), 0, &catalog) == "");
}

BOOST_AUTO_TEST_CASE(only_ports_that_refuse_something_need_a_look) {
  const auto is_needed = [](const char* type, const heddle_widget* widget,
                            std::uint32_t flags = 0) {
    const heddle_port port{sizeof(heddle_port), flags, "in", type, "", widget};
    return PortCheck(port).is_needed();
  };
  BOOST_TEST(!is_needed("*", nullptr));
  BOOST_TEST(!is_needed("LATENT", nullptr));
  BOOST_TEST(is_needed("INT", nullptr));
  const heddle_widget range = test::int_widget(0, 1, 2);
  BOOST_TEST(is_needed("*", &range));
}

BOOST_AUTO_TEST_CASE(check_throws_with_the_input_s_name) {
  const heddle_widget widget = test::int_widget(0, 1, 2);
  const heddle_port port{sizeof(heddle_port), 0, "steps", "INT", "", &widget};
  const Error error = test::refusal_of([&] { PortCheck(port).check(*whole(3), nullptr); });
  BOOST_TEST((error.code() == Code::invalid_argument));
  BOOST_TEST(error.what() == std::string("input 'steps': 3 is above the greatest value 2. Give a "
                                         "number from 1 to 2."));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace heddle::engine
