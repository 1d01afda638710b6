#include "engine/graph/python_text.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

namespace heddle::engine {
namespace {

std::string text_of(std::string_view json) { return python_text(parse_json(json, "test")); }

// Decimal, or "none".
std::string integer(std::string_view text) {
  const std::optional<WholeNumber> number = python_integer(text);
  return number ? std::visit([](auto whole) { return std::to_string(whole); }, *number) : "none";
}

BOOST_AUTO_TEST_SUITE(python_text_)

// The right sides are what CPython 3.11 prints for str(json.loads(left)).
BOOST_AUTO_TEST_CASE(text_is_that_of_python) {
  BOOST_TEST(text_of("5") == "5");
  BOOST_TEST(text_of("18446744073709551615") == "18446744073709551615");
  BOOST_TEST(text_of("5.0") == "5.0");
  BOOST_TEST(text_of("-0.0") == "-0.0");
  BOOST_TEST(text_of("0.1") == "0.1");
  BOOST_TEST(text_of("1e-4") == "0.0001");
  BOOST_TEST(text_of("1e-5") == "1e-05");
  BOOST_TEST(text_of("123456789012345680.0") == "1.2345678901234568e+17");
  BOOST_TEST(text_of("1e15") == "1000000000000000.0");
  BOOST_TEST(text_of("1e16") == "1e+16");
  BOOST_TEST(text_of("9999999999999998.0") == "9999999999999998.0");
  BOOST_TEST(text_of("1.5e300") == "1.5e+300");
  BOOST_TEST(text_of("[NaN, Infinity, -Infinity]") == "[nan, inf, -inf]");
  BOOST_TEST(text_of("true") == "True");
  BOOST_TEST(text_of("false") == "False");
  BOOST_TEST(text_of("null") == "None");
  BOOST_TEST(text_of("\"as 'it' is\\n\"") == "as 'it' is\n");
  BOOST_TEST(text_of("[]") == "[]");
  BOOST_TEST(text_of("{}") == "{}");
  BOOST_TEST(text_of(R"({"a": [1, "x", null], "b": {"c": 1.0}})") ==
             "{'a': [1, 'x', None], 'b': {'c': 1.0}}");
  BOOST_TEST(text_of(R"(["it's", "say \"a\"", "'\"", "\n\t\\", "\u0001\u007f\u0085\u00e9"])") ==
             R"(["it's", 'say "a"', '\'"', '\n\t\\', '\x01\x7f\x85é'])");
}

BOOST_AUTO_TEST_CASE(truth_is_that_of_python) {
  for (const char* json : {"null", "false", "0", "0.0", "-0.0", "\"\"", "[]", "{}"})
    BOOST_TEST(!python_truth(parse_json(json, "test")), json);
  for (const char* json : {"true", "1", "-1", "0.5", "NaN", "\"false\"", "\" \"", "[0]",
                           "{\"a\":0}", "18446744073709551615"})
    BOOST_TEST(python_truth(parse_json(json, "test")), json);
}

BOOST_AUTO_TEST_CASE(integers_are_read_as_python_reads_them) {
  BOOST_TEST(integer("12") == "12");
  BOOST_TEST(integer(" \t-7\n") == "-7");
  BOOST_TEST(integer("+0012") == "12");
  BOOST_TEST(integer("1_000") == "1000");
  BOOST_TEST(integer("18446744073709551615") == "18446744073709551615");
  BOOST_TEST(integer("-9223372036854775808") == "-9223372036854775808");
  for (const char* text : {"", " ", "-", "1.5", "1e3", "0x10", "12a", "1__0", "_1", "1_", "- 1",
                           "+-1", "18446744073709551616", "-9223372036854775809"})
    BOOST_TEST(integer(text) == "none", text);
}

BOOST_AUTO_TEST_CASE(numbers_are_read_as_python_reads_them) {
  BOOST_TEST(python_float("1.5").value() == 1.5);
  BOOST_TEST(python_float(" -1e3 ").value() == -1000);
  BOOST_TEST(python_float("+.5").value() == 0.5);
  BOOST_TEST(python_float("5.").value() == 5);
  BOOST_TEST(python_float("1_0.5").value() == 10.5);
  BOOST_TEST(python_float("-Infinity").value() == -std::numeric_limits<double>::infinity());
  BOOST_TEST(python_float("1e999").value() == std::numeric_limits<double>::infinity());
  BOOST_TEST(python_float("1e-999").value() == 0);
  BOOST_TEST(python_float("0." + std::string(400, '0') + "1").value() == 0);
  BOOST_TEST(python_float(std::string(400, '9')).value() ==
             std::numeric_limits<double>::infinity());
  BOOST_TEST(std::isnan(python_float("nan").value()));
  for (const char* text : {"", "-", ".", "e5", "1e", "1.5x", "0x10", "in", "--1", "+-1", "1 2"})
    BOOST_TEST(!python_float(text).has_value(), text);
}

BOOST_AUTO_TEST_CASE(fractions_are_cut_off_toward_zero) {
  BOOST_TEST(std::get<std::int64_t>(truncated(2.9).value()) == 2);
  BOOST_TEST(std::get<std::int64_t>(truncated(-2.9).value()) == -2);
  BOOST_TEST(std::get<std::uint64_t>(truncated(9223372036854775808.0).value()) == std::uint64_t{1}
                                                                                      << 63);
  for (const double number :
       {18446744073709551616.0, -9223372036854777856.0, std::nan(""), HUGE_VAL})
    BOOST_TEST(!truncated(number).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
