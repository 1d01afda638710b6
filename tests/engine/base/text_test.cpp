#include "engine/base/text.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using namespace heddle::engine;

namespace {

using Names = std::vector<std::string>;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

}  // namespace

BOOST_AUTO_TEST_SUITE(text_test)

BOOST_AUTO_TEST_CASE(cat_writes_texts_and_numbers) {
  const std::string text = "a";
  BOOST_TEST(cat(text, std::string_view("b"), "c", 'd', -5, std::uint64_t{18446744073709551615u},
                 true) == "abcd-518446744073709551615true");
  BOOST_TEST(cat() == "");
  BOOST_TEST(cat(std::uint8_t{200}, ' ', std::int8_t{-3}) == "200 -3");
}

BOOST_AUTO_TEST_CASE(cat_writes_reals_with_the_fewest_digits_that_read_back) {
  BOOST_TEST(cat(0.1) == "0.1");
  BOOST_TEST(cat(0.1f) == "0.1");
  BOOST_TEST(cat(1.0 / 3) == "0.3333333333333333");
  BOOST_TEST(cat(5.0) == "5");
  BOOST_TEST(cat(1e300) == "1e+300");
}

BOOST_AUTO_TEST_CASE(join_puts_the_separator_between) {
  BOOST_TEST(join(std::vector<int>{1, 2, 3}, ", ") == "1, 2, 3");
  BOOST_TEST(join(Names{"a"}, ", ") == "a");
  BOOST_TEST(join(Names{}, ", ") == "");
}

BOOST_AUTO_TEST_CASE(format_bytes_uses_binary_units_with_one_decimal) {
  BOOST_TEST(format_bytes(0) == "0 B");
  BOOST_TEST(format_bytes(1023) == "1023 B");
  BOOST_TEST(format_bytes(1024) == "1.0 KiB");
  BOOST_TEST(format_bytes(1536) == "1.5 KiB");
  BOOST_TEST(format_bytes(14 * kGiB) == "14.0 GiB");
  BOOST_TEST(format_bytes(1048575) == "1.0 MiB");
  BOOST_TEST(format_bytes(std::numeric_limits<std::uint64_t>::max()) == "16.0 EiB");
}

BOOST_AUTO_TEST_CASE(parse_bytes_reads_binary_and_decimal_units) {
  BOOST_TEST(parse_bytes("1000").value() == 1000u);
  BOOST_TEST(parse_bytes("14GiB").value() == 14 * kGiB);
  BOOST_TEST(parse_bytes(" 14 gib ").value() == 14 * kGiB);
  BOOST_TEST(parse_bytes("512MiB").value() == 512u << 20);
  BOOST_TEST(parse_bytes("2g").value() == 2 * kGiB);
  BOOST_TEST(parse_bytes("1.5G").value() == kGiB + kGiB / 2);
  BOOST_TEST(parse_bytes("2GB").value() == 2'000'000'000u);
  BOOST_TEST(parse_bytes("7b").value() == 7u);
  BOOST_TEST(parse_bytes("18446744073709551615").value() ==
             std::numeric_limits<std::uint64_t>::max());
}

BOOST_AUTO_TEST_CASE(parse_bytes_refuses_what_is_no_size) {
  for (const char* text : {"", "GiB", "-1", "1x", "1 2", "1.2.3", ".", "1e3", "0x10", "14GiBs",
                           "18446744073709551616", "16777216t", "99999999999.5t", "nan", "inf"}) {
    BOOST_TEST(!parse_bytes(text).has_value(), text);
  }
}

BOOST_AUTO_TEST_CASE(parse_bytes_reads_what_format_bytes_wrote) {
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{1023}, std::uint64_t{1536}, 14 * kGiB, 3 * kGiB / 2}) {
    BOOST_TEST(parse_bytes(format_bytes(bytes)).value() == bytes);
  }
}

BOOST_AUTO_TEST_CASE(nearest_finds_typos_swaps_and_other_case) {
  const Names names = {"KSampler", "VAEDecode", "CLIPTextEncode", "LoraLoader",
                       "CheckpointLoaderSimple"};
  BOOST_TEST(nearest("KSamlper", names).front() == "KSampler");
  BOOST_TEST(nearest("vaedecode", names).front() == "VAEDecode");
  BOOST_TEST(nearest("CheckpointLoaderSimpel", names).front() == "CheckpointLoaderSimple");
  BOOST_TEST(nearest("SaveImage", names).empty());
  BOOST_TEST(nearest("", names).empty());
}

BOOST_AUTO_TEST_CASE(nearest_sorts_by_distance_then_case_then_order_and_keeps_the_limit) {
  const Names names = {"stepss", "STEPS", "steps", "stepz", "step"};
  BOOST_TEST(nearest("steps", names) == (Names{"steps", "STEPS", "stepss"}),
             boost::test_tools::per_element());
  BOOST_TEST(nearest("steps", names, 1) == (Names{"steps"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(nearest_does_not_propose_names_that_have_nothing_in_common) {
  BOOST_TEST(nearest("x", Names{"y", "z"}).empty());
  BOOST_TEST(nearest("cfg", Names{"vae"}).empty());
}

BOOST_AUTO_TEST_CASE(nearest_gives_up_on_names_of_unreasonable_length) {
  const std::string huge(1'000'000, 'a');
  BOOST_TEST(nearest(huge, Names{huge}).empty());
  BOOST_TEST(nearest("steps", Names{huge}).empty());
}

BOOST_AUTO_TEST_CASE(did_you_mean_is_a_sentence_or_nothing) {
  BOOST_TEST(did_you_mean("stepz", Names{"steps"}) == " Did you mean 'steps'?");
  BOOST_TEST(did_you_mean("stepz", Names{"steps", "stepy"}) == " Did you mean 'steps' or 'stepy'?");
  BOOST_TEST(suggestion({"a", "b", "c"}) == " Did you mean 'a', 'b' or 'c'?");
  BOOST_TEST(did_you_mean("denoise", Names{"steps"}) == "");
}

BOOST_AUTO_TEST_CASE(quote_makes_any_bytes_printable) {
  BOOST_TEST(quote("a b") == "'a b'");
  BOOST_TEST(quote("a\nb\x01\x7f") == "'a\\nb\\x01\\u007f'");
  BOOST_TEST(quote(std::string_view("\0", 1)) == "'\\x00'");
  BOOST_TEST(quote("\xff") == "'\xEF\xBF\xBD'");
  BOOST_TEST(quote(std::string(10'000, 'a')).size() == 202u);
}

BOOST_AUTO_TEST_CASE(what_commands_a_terminal_is_written_out) {
  BOOST_TEST(printable("\x1b[2J\r\t\x7f") == "\\x1b[2J\\r\\t\\u007f");
  BOOST_TEST(printable("\xc2\x80\xc2\x9b\xc2\x9f\u2028\u2029\u202a\u202e\u2066\u2069") ==
             "\\u0080\\u009b\\u009f\\u2028\\u2029\\u202a\\u202e\\u2066\\u2069");
  BOOST_TEST(printable("\x9b\xc3") == "\uFFFD\uFFFD");  // no UTF-8: the byte 9b alone is C1, too
  for (const char* harmless :
       {"", "a b", "\u00a0\u00e9", "\u2027\u202f\u2065\u206a", "\U0001f642", "\\x1b"})
    BOOST_TEST(printable(harmless) == harmless);
  BOOST_TEST(printable("a\nb") == "a\\nb");
  BOOST_TEST(printable_lines("a\nb\r\x1b") == "a\nb\\r\\x1b");
}

BOOST_AUTO_TEST_CASE(clip_cuts_between_characters) {
  BOOST_TEST(clip("abcdef", 6) == "abcdef");
  BOOST_TEST(clip("abcdefg", 6) == "abc...");
  BOOST_TEST(clip("\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4", 6) ==
             "\xC3\xA4...");  // four times a-umlaut, of two bytes each
  BOOST_TEST(clip("abcdef", 2) == "..");
  BOOST_TEST(clip("abcdef", 0) == "");
}

BOOST_AUTO_TEST_CASE(utf8_check_knows_the_borders_of_the_encoding) {
  for (const char* valid :
       {"", "abc", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    BOOST_TEST(!find_invalid_utf8(valid).has_value());
  }
  for (const char* invalid :
       {"a\x80", "a\xC0\x80", "a\xC1\xBF", "a\xE0\x9F\xBF", "a\xED\xA0\x80", "a\xF0\x8F\xBF\xBF",
        "a\xF4\x90\x80\x80", "a\xF5\x80\x80\x80", "a\xC3", "a\xE2\x82", "a\xC3(", "a\xFF"}) {
    BOOST_TEST(find_invalid_utf8(invalid).value() == 1u);
  }
  // At every distance from the beginning and the end, past runs of ASCII.
  for (std::size_t before = 0; before < 20; ++before)
    for (std::size_t behind = 0; behind < 20; ++behind) {
      const std::string left(before, 'a'), right(behind, 'z');
      BOOST_TEST(find_invalid_utf8(left + "\xFF" + right).value() == before);
      BOOST_TEST(!find_invalid_utf8(left + "\xC3\xA4" + right).has_value());
      BOOST_TEST(find_invalid_utf8(left + "\xC3").value() == before);
    }
  BOOST_TEST(!find_invalid_utf8(std::string_view("a\0b", 3)).has_value());
}

BOOST_AUTO_TEST_CASE(invalid_bytes_become_replacement_characters) {
  BOOST_TEST(to_valid_utf8("a\xFF\xC3\xA4\x80") == "a\xEF\xBF\xBD\xC3\xA4\xEF\xBF\xBD");
  BOOST_TEST(to_valid_utf8("plain") == "plain");
}

BOOST_AUTO_TEST_CASE(glob_matches_whole_names) {
  BOOST_TEST(matches_glob("double.*", "double.3"));
  BOOST_TEST(matches_glob("double.*", "double."));
  BOOST_TEST(!matches_glob("double.*", "double"));
  BOOST_TEST(!matches_glob("double", "double.3"));
  BOOST_TEST(matches_glob("*", ""));
  BOOST_TEST(matches_glob("", ""));
  BOOST_TEST(!matches_glob("", "a"));
  BOOST_TEST(matches_glob("single.?", "single.7"));
  BOOST_TEST(!matches_glob("single.?", "single.17"));
  BOOST_TEST(matches_glob("*.attn.*.weight", "up.1.attn.to_q.weight"));
  BOOST_TEST(matches_glob("*ab", "aab"));
  BOOST_TEST(!matches_glob("*ab", "aba"));
  BOOST_TEST(matches_glob("a**b", "ab"));
}

BOOST_AUTO_TEST_CASE(glob_of_many_stars_does_not_explode) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  BOOST_TEST(!matches_glob(pattern + "b", std::string(2000, 'a')));
}

BOOST_AUTO_TEST_CASE(many_lines_are_clipped_with_their_count) {
  const std::vector<std::string> few(21, "x");
  BOOST_TEST(clip_lines(few).size() == 21u);  // one line more is as short as saying so
  const std::vector<std::string> clipped = clip_lines(std::vector<std::string>(1000, "x"));
  BOOST_TEST(clipped.size() == 21u);
  BOOST_TEST(clipped.back() == "... and 980 more");
  BOOST_TEST(clip_lines(std::vector<std::string>(1000, "x"), 979).size() == 1000u);
  BOOST_TEST(clip_lines(std::vector<std::string>(1000, "x"), 978).back() == "... and 2 more");
}

BOOST_AUTO_TEST_SUITE_END()
