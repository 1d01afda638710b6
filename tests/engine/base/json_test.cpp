#include "engine/base/json.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <new>
#include <string>
#include <string_view>

#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "tests/support/golden_files.h"
#include "tests/support/refusal.h"

using namespace heddle::engine;
using heddle::test::refusal_of;

namespace {

Json parse(std::string_view text) { return parse_json(text, "t.json"); }

std::string refusal(std::string_view text) {
  return refusal_of([&] { parse(text); }).what();
}

std::string rewritten(std::string_view text) { return write_json(parse(text)); }

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

Json goldens() {
  const auto path = heddle::test::tests_folder() / "engine/base/json_goldens.json";
  const MappedFile file(path);
  return parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
                    path.native());
}

// The child's exit code where `call` meets a process without memory: 0 when it says so, 1 when it
// ends well, 128 and the signal when it is killed.
template <typename Call>
int without_memory(const Call& call) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit nothing_more{1, 1}, no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::setrlimit(RLIMIT_AS, &nothing_more);
    // What is left are a few of the smallest blocks, as any process has them.
    void* small[8];
    for (void*& block : small) block = std::malloc(24);
    for (std::size_t size = std::size_t{1} << 20; size >= 64; size -= size > 2048 ? size / 2 : 16)
      for (void* volatile taken = &small; taken != nullptr;) taken = std::malloc(size - 8);
    for (void* block : small) std::free(block);
    try {
      call();
    } catch (const std::bad_alloc&) {
      ::_exit(0);
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(json_test)

BOOST_AUTO_TEST_CASE(numbers_keep_their_kind) {
  BOOST_TEST((parse("5").kind() == Json::Kind::integer));
  BOOST_TEST((parse("-0").kind() == Json::Kind::integer));
  BOOST_TEST((parse("5.0").kind() == Json::Kind::real));
  BOOST_TEST((parse("5e0").kind() == Json::Kind::real));
  BOOST_TEST((parse("9223372036854775807").kind() == Json::Kind::integer));
  BOOST_TEST((parse("9223372036854775808").kind() == Json::Kind::unsigned_integer));
  BOOST_TEST((parse("18446744073709551615").kind() == Json::Kind::unsigned_integer));
  BOOST_TEST((parse("18446744073709551616").kind() == Json::Kind::real));
  BOOST_TEST((parse("-9223372036854775809").kind() == Json::Kind::real));
}

BOOST_AUTO_TEST_CASE(whole_numbers_of_64_bits_are_exact) {
  BOOST_TEST(parse("18446744073709551615").as_uint64() ==
             std::numeric_limits<std::uint64_t>::max());
  BOOST_TEST(parse("-9223372036854775808").as_int64() == std::numeric_limits<std::int64_t>::min());
  BOOST_TEST(rewritten("[18446744073709551615,-9223372036854775808,9007199254740993]") ==
             "[18446744073709551615,-9223372036854775808,9007199254740993]");
}

// The longer ones lie at or beside the middle between two doubles, where a reader that rounds twice
// goes wrong.
BOOST_AUTO_TEST_CASE(reals_are_read_to_the_nearest_double) {
  BOOST_TEST(parse("0.1").as_double() == 0.1);
  BOOST_TEST(parse("9007199254740993.0").as_double() == 9007199254740992.0);
  BOOST_TEST(parse("9007199254740993.00000000000000000000001").as_double() == 9007199254740994.0);
  BOOST_TEST(parse("2.2250738585072011e-308").as_double() == 2.2250738585072011e-308);
  BOOST_TEST(parse("1.7976931348623157e308").as_double() == std::numeric_limits<double>::max());
  BOOST_TEST(parse("5e-324").as_double() == std::numeric_limits<double>::denorm_min());
  BOOST_TEST(parse("1e-400").as_double() == 0.0);
  BOOST_TEST(std::signbit(parse("-1e-400").as_double()));
  BOOST_TEST(std::signbit(parse("-0.0").as_double()));
}

// json_goldens.json is written by make_json_goldens.py with Python's json module.
BOOST_AUTO_TEST_CASE(numbers_are_the_doubles_that_python_reads) {
  const Json json = goldens();
  BOOST_TEST(json.at("numbers").size() > 300u);
  for (const Json& golden : json.at("numbers").as_array()) {
    const std::string& text = golden.at(0).as_string();
    const double read = parse(text).as_double();
    BOOST_TEST(std::bit_cast<std::uint64_t>(read) == golden.at(1).as_uint64(), text);
    const double again = parse(write_json(Json(read))).as_double();
    BOOST_TEST(std::bit_cast<std::uint64_t>(again) == golden.at(1).as_uint64(), text);
  }
}

// "-NaN" and "Inf" are RapidJSON's; Python does not write them.
BOOST_AUTO_TEST_CASE(texts_are_accepted_and_refused_as_by_python) {
  const Json json = goldens();
  for (const Json& golden : json.at("texts").as_array()) {
    const std::string& text = golden.at(0).as_string();
    if (text == "-NaN") continue;
    const bool accepted = refusal(text) == "nothing was thrown";
    BOOST_TEST(accepted == golden.at(1).as_bool(), text);
  }
}

BOOST_AUTO_TEST_CASE(numbers_too_large_for_a_double_are_refused) {
  BOOST_TEST(refusal("[1,1e400]") == "t.json:1:4: the number is too large");
  BOOST_TEST(refusal("1.8e308") == "t.json:1:1: the number is too large");
  BOOST_TEST(refusal("-" + std::string(400, '9')).ends_with("the number is too large"));
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_are_read_and_written_as_python_does) {
  BOOST_TEST(std::isnan(parse("NaN").as_double()));
  BOOST_TEST(parse("-Infinity").as_double() == -std::numeric_limits<double>::infinity());
  BOOST_TEST(rewritten("[NaN, Infinity, -Infinity]") == "[NaN,Infinity,-Infinity]");
}

BOOST_AUTO_TEST_CASE(reals_are_written_with_the_fewest_digits_and_stay_real) {
  BOOST_TEST(
      rewritten(
          "[5.0, 0.1, 1e22, 1e-7, -0.0, 123456789012345680.0, 5e-324, 0.30000000000000004]") ==
      "[5.0,0.1,1e+22,1e-07,-0.0,123456789012345680.0,5e-324,0.30000000000000004]");
}

BOOST_AUTO_TEST_CASE(texts_may_hold_any_character) {
  BOOST_TEST(parse(R"("a\u0000b")").as_string() == std::string_view("a\0b", 3));
  BOOST_TEST(parse(R"("\u00e4\ud83d\ude00\/\b\f\n\r\t\"\\")").as_string() ==
             "\xC3\xA4\xF0\x9F\x98\x80/\b\f\n\r\t\"\\");
  BOOST_TEST(rewritten(R"("\u0000\u001f\b\t\n\f\r\"\\/ä")") == R"("\u0000\u001F\b\t\n\f\r\"\\/ä")");
  BOOST_TEST(parse(rewritten(R"("\u0000\u001f\u007f\u2028")")).as_string() ==
             std::string_view("\0\x1f\x7f\xE2\x80\xA8", 6));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_are_written_as_replacement_characters) {
  BOOST_TEST(write_json(Json::object().set("k\xFF", "a\xC3")) ==
             "{\"k\xEF\xBF\xBD\":\"a\xEF\xBF\xBD\"}");
}

BOOST_AUTO_TEST_CASE(invalid_utf8_and_half_surrogates_are_refused) {
  BOOST_TEST(refusal("{\n \"a\xFF\": 1}") == "t.json:2:4: invalid UTF-8");
  BOOST_TEST(refusal(R"(["\ud800"])") == "t.json:1:3: unpaired surrogate in a \\u escape");
  BOOST_TEST(refusal(R"(["a", "\udc00"])") ==
             "t.json:1:7: the text holds an unpaired surrogate (\\udc00 to \\udfff)");
  BOOST_TEST(refusal(R"({"\udc00": 1})") ==
             "t.json:1:2: the text holds an unpaired surrogate (\\udc00 to \\udfff)");
}

BOOST_AUTO_TEST_CASE(every_value_and_key_knows_its_place) {
  const Json json = parse(
      "{ \"a\" : [1,\n  \"x\\\"\\\\\", {}],\n\"b\\\\\":\ttrue, \"c\": null, \"d\": "
      "-1.5e3,\"e\":false }");
  BOOST_TEST(json.where() == "1:1");
  BOOST_TEST(json.at("a").where() == "1:9");
  BOOST_TEST(json.at("a").at(0).where() == "1:10");
  BOOST_TEST(json.at("a").at(1).where() == "2:3");
  BOOST_TEST(json.at("a").at(2).where() == "2:12");
  BOOST_TEST(json.at("b\\").where() == "3:8");
  BOOST_TEST(json.at("c").where() == "3:19");
  BOOST_TEST(json.at("d").where() == "3:30");
  BOOST_TEST(json.at("e").where() == "3:41");
  BOOST_TEST(json.members()[1].line == 3u);
  BOOST_TEST(json.members()[1].column == 1u);
  BOOST_TEST(json.members()[4].column == 37u);
}

BOOST_AUTO_TEST_CASE(columns_count_bytes_and_a_byte_order_mark_does_not_count) {
  BOOST_TEST(parse("\xEF\xBB\xBF[\"\xC3\xA4\", 1]").at(1).where() == "1:8");
}

BOOST_AUTO_TEST_CASE(syntax_errors_name_their_place) {
  BOOST_TEST(refusal("") == "t.json:1:1: the text is empty");
  BOOST_TEST(refusal(" \n ") == "t.json:2:2: the text is empty");
  BOOST_TEST(refusal("{} x") == "t.json:1:4: there is more text behind the value");
  BOOST_TEST(refusal("[1\n 2]") == "t.json:2:2: expected ',' or ']' in the array");
  BOOST_TEST(refusal("{\"a\" 1}") == "t.json:1:6: expected ':' after the key");
  BOOST_TEST(refusal("{\"a\":1 \"b\"}") == "t.json:1:8: expected ',' or '}' in the object");
  BOOST_TEST(refusal("{a:1}") == "t.json:1:2: expected a key in double quotes or '}'");
  BOOST_TEST(refusal("[1,]") == "t.json:1:4: expected a value");
  BOOST_TEST(refusal("[\"abc") == "t.json:1:6: the text's closing quote is missing");
  BOOST_TEST(refusal("[\"a\nb\"]") ==
             "t.json:1:4: invalid escape or bare control character in a text");
  BOOST_TEST(refusal("[\"\\x\"]") ==
             "t.json:1:3: invalid escape or bare control character in a text");
  BOOST_TEST(refusal("[\"\\u12g4\"]") == "t.json:1:3: expected four hexadecimal digits after \\u");
  BOOST_TEST(refusal("1.") == "t.json:1:3: expected a digit after the decimal point");
  BOOST_TEST(refusal("1e") == "t.json:1:3: expected a digit in the exponent");
  BOOST_TEST(refusal("[01]") == "t.json:1:3: expected ',' or ']' in the array");
  BOOST_TEST(refusal("// x\n1").starts_with("t.json:1:1: "));
}

BOOST_AUTO_TEST_CASE(a_nul_byte_does_not_end_the_text) {
  BOOST_TEST(refusal(std::string_view("[1]\0", 4)) ==
             "t.json:1:4: there is more text behind the value");
  BOOST_TEST(refusal(std::string_view("[1,\0 2]", 7)).starts_with("t.json:1:4: "));
  BOOST_TEST(refusal(std::string_view("\0", 1)).starts_with("t.json:1:1: "));
  BOOST_TEST(refusal(std::string_view("\"a\0\"", 4)).starts_with("t.json:1:3: "));
}

BOOST_AUTO_TEST_CASE(nesting_is_limited_with_a_place_whatever_the_depth) {
  BOOST_TEST(write_json(parse(nested(kMaxJsonDepth))) == nested(kMaxJsonDepth));
  BOOST_TEST(refusal(nested(kMaxJsonDepth + 1)) ==
             "t.json:1:513: arrays and objects are nested more than 512 deep");
  BOOST_TEST(refusal(std::string(200'000, '[')) ==
             "t.json:1:513: arrays and objects are nested more than 512 deep");
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":\n";
  BOOST_TEST(refusal(objects) == "t.json:513:1: arrays and objects are nested more than 512 deep");
}

BOOST_AUTO_TEST_CASE(of_a_repeated_key_the_last_value_and_the_first_position_count) {
  const Json json = parse(R"({"a": 1, "b": 2, "a": 3})");
  BOOST_TEST(write_json(json) == R"({"a":3,"b":2})");
  BOOST_TEST(json.members()[0].repeated);
  BOOST_TEST(!json.members()[1].repeated);
  BOOST_TEST(json.members()[0].column == 2u);
  BOOST_TEST(json.at("a").where() == "1:23");
}

BOOST_AUTO_TEST_CASE(a_repeated_key_drops_the_whole_old_value) {
  BOOST_TEST(rewritten(R"({"a": {"x": 1, "y": 2}, "a": {"x": 3}})") == R"({"a":{"x":3}})");
}

BOOST_AUTO_TEST_CASE(large_objects_keep_order_and_find_every_key) {
  std::string text = "{";
  for (int i = 0; i < 50'000; ++i) text += cat(i == 0 ? "" : ",", "\"key", i, "\":", i);
  text += "}";
  const Json json = parse(text);
  BOOST_REQUIRE(json.size() == 50'000u);
  for (int i = 0; i < 50'000; ++i) BOOST_REQUIRE(json.at(cat("key", i)).as_int64() == i);
  BOOST_TEST(json.find("key50000") == nullptr);
  BOOST_TEST((write_json(json) == text));
}

BOOST_AUTO_TEST_CASE(accessors_say_where_what_they_expected_and_what_there_is) {
  const Json json = parse(
      "{\"i\": 5,\n \"s\": \"x\", \"r\": 5.0, \"a\": [1], \"u\": 18446744073709551615, \"n\": -1}");
  const auto message = [&](auto action) { return std::string(refusal_of(action).what()); };
  BOOST_TEST(message([&] { json.at("i").as_string(); }) ==
             "1:7: expected a text, got the integer 5");
  BOOST_TEST(message([&] { json.at("s").as_bool(); }) ==
             "2:7: expected true or false, got the text 'x'");
  BOOST_TEST(message([&] { json.at("r").as_int64(); }) ==
             "2:17: expected an integer, got the number 5.0");
  BOOST_TEST(message([&] { json.at("a").members(); }) ==
             "2:27: expected an object, got an array of 1 element");
  BOOST_TEST(message([&] { json.at("a").at(1); }) ==
             "2:27: expected an array of at least 2 elements, got an array of 1 element");
  BOOST_TEST(message([&] { json.at("u").as_int64(); }) ==
             "2:37: expected an integer below 2^63, got the integer 18446744073709551615");
  BOOST_TEST(message([&] { json.at("n").as_uint64(); }) ==
             "2:64: expected an integer of at least 0, got the integer -1");
  BOOST_TEST(message([&] { json.as_array(); }) ==
             "1:1: expected an array, got an object of 6 members");
  BOOST_TEST(message([&] { json.at("ii"); }) ==
             "1:1: the object has no member 'ii'. Did you mean 'i'?");
  BOOST_TEST(message([&] { json.at("s").as_double(); }) ==
             "2:7: expected a number, got the text 'x'");
  BOOST_TEST(message([] { Json(true).as_double(); }) == "expected a number, got true");
}

BOOST_AUTO_TEST_CASE(find_answers_nothing_for_absent_keys_and_other_kinds) {
  BOOST_TEST(parse("{}").find("a") == nullptr);
  BOOST_TEST(parse("[1]").find("a") == nullptr);
  BOOST_TEST(parse("5").size() == 0u);
  BOOST_TEST(parse("3").as_double() == 3.0);
}

BOOST_AUTO_TEST_CASE(values_are_built_in_code) {
  Json json = Json::object();
  json.set("i", 5)
      .set("u", std::numeric_limits<std::uint64_t>::max())
      .set("b", true)
      .set("t", "text");
  json.set("n", nullptr).set("r", 2.0).set("list", Json::array().push(1).push("two"));
  json.set("i", -6);
  BOOST_TEST(
      write_json(json) ==
      R"({"i":-6,"u":18446744073709551615,"b":true,"t":"text","n":null,"r":2.0,"list":[1,"two"]})");
  BOOST_TEST(json.where() == "");
  BOOST_TEST((Json(std::uint64_t{5}).kind() == Json::Kind::integer));
}

BOOST_AUTO_TEST_CASE(indented_text_reads_back_as_the_same_value) {
  const Json json = parse(R"({"a": [1, {"b": []}], "c": {}})");
  BOOST_TEST(write_json(json, 2) ==
             "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}");
  BOOST_TEST((parse(write_json(json, 2)) == json));
}

BOOST_AUTO_TEST_CASE(equality_ignores_place_and_order_of_members_but_not_kind) {
  BOOST_TEST((parse(R"({"a":1,"b":[true]})") == parse("{\"b\" : [true],\n\"a\":1}")));
  BOOST_TEST((parse("5") != parse("5.0")));
  BOOST_TEST((parse("[1,2]") != parse("[2,1]")));
  BOOST_TEST((parse(R"({"a":1})") != parse(R"({"a":1,"b":1})")));
  BOOST_TEST((parse(R"({"a":1})") != parse(R"({"b":1})")));
}

BOOST_AUTO_TEST_CASE(copies_are_deep_and_parts_may_replace_the_whole) {
  Json json = parse(R"({"a": {"b": [1, 2]}})");
  Json copy = json;
  copy.set("a", 1);
  BOOST_TEST(write_json(json) == R"({"a":{"b":[1,2]}})");
  Json part = json.at("a");
  json.set("self", json);
  BOOST_TEST(write_json(json.at("self")) == R"({"a":{"b":[1,2]}})");
  json = Json(json.at("a"));
  BOOST_TEST((json == part));
}

BOOST_AUTO_TEST_CASE(objects_can_be_taken_out_while_the_rest_is_read) {
  std::string taken;
  const JsonTaker take = [&](std::string_view around, const Json::Member& member) {
    taken += cat(around, "/", member.key, "=", write_json(member.value), " ");
    return member.value.find("t") != nullptr;
  };
  const Json json = parse_json(
      R"({"a": {"t": 1}, "b": {"c": {"t": [{"x": {}}]}, "d": {"e": {"t": 2}}, "f": 3}, "g": [{"t": 4}],
          "h": {"k": [{"t": 5}]}, "a": {"t": 6}})",
      "text", take);
  BOOST_TEST(taken ==
             "/a={\"t\":1} b/c={\"t\":[{\"x\":{}}]} b/d={\"e\":{\"t\":2}} "
             "/b={\"c\":null,\"d\":{\"e\":{\"t\":2}},\"f\":3} /h={\"k\":[{\"t\":5}]} "
             "/a={\"t\":6} ");
  BOOST_TEST(write_json(json) ==
             "{\"a\":null,\"b\":{\"c\":null,\"d\":{\"e\":{\"t\":2}},\"f\":3},\"g\":[{\"t\":4}],"
             "\"h\":{\"k\":[{\"t\":5}]}}");
}

BOOST_AUTO_TEST_CASE(integers_beyond_64_bits_keep_their_digits) {
  for (const std::string text :
       {"18446744073709551616", "-9223372036854775809", "99999999999999999999999"}) {
    const Json json = parse_json(text, "text");
    BOOST_TEST((json.kind() == Json::Kind::real));
    BOOST_TEST(json.describe() == "the integer " + text);
    BOOST_TEST(write_json(json) == text);
    BOOST_TEST(json.as_double() == std::stod(text));
    BOOST_TEST((json == parse_json(text, "text")));
    BOOST_TEST((json != parse_json(text + "0", "text")));
    BOOST_TEST((json != Json(json.as_double())));
    BOOST_CHECK_EXCEPTION(json.as_int64(), Error, [&](const Error& error) {
      return std::string(error.what()).find("an integer of 64 bits, got the integer " + text) !=
             std::string::npos;
    });
  }
  BOOST_TEST(parse_json("18446744073709551615", "text").is_integer());
  BOOST_TEST(parse_json("1e20", "text").wide_digits() == nullptr);
}

#if !defined(HEDDLE_ADDRESS_SANITIZER) && !defined(HEDDLE_THREAD_SANITIZER)  // their own memory
BOOST_AUTO_TEST_CASE(no_memory_is_an_exception) {
  const Json json = parse(R"({"a": [1, "text", {"b": 2.5}]})");
  BOOST_TEST(without_memory([] { (void)parse(R"({"a": 1})"); }) == 0);
  BOOST_TEST(without_memory([&] { (void)write_json(json); }) == 0);
  BOOST_TEST(without_memory([&] { (void)write_json(json, 2); }) == 0);
}
#endif

BOOST_AUTO_TEST_SUITE_END()
