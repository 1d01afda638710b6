// Expectations for characters come from the Unicode character database and the standard's own
// examples.
#include <boost/test/unit_test.hpp>

#include "plugins/encoders/tokenizer/charsmap.h"
#include "plugins/encoders/tokenizer/piece_trie.h"
#include "plugins/encoders/tokenizer/regex.h"
#include "plugins/encoders/tokenizer/regex_dialect.h"
#include "plugins/encoders/tokenizer/text_error.h"
#include "plugins/encoders/tokenizer/unicode.h"
#include "plugins/encoders/tokenizer/utf8.h"

#include "collected.h"
#include "heap_peak.h"

namespace heddle::text {
namespace {

std::string matches(std::string_view pattern, std::string_view text) {
  std::string out;
  for (const Span& span : matches_of(Regex::compile(pattern, "test"), text)) {
    out += "<" + std::string(text.substr(span.begin, span.end - span.begin)) + ">";
  }
  return out;
}

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>((value >> (8 * i)) & 0xFF));
  return bytes;
}

// A double array with the one rule "a" -> "X" (or what `value` points at).
std::string one_rule_map(std::uint32_t value, std::uint32_t leaf_offset = 0x80) {
  std::vector<std::uint32_t> units(256);
  units[0] = 1U << 10;
  units['a' ^ 1] = 'a' | (1U << 8) | (leaf_offset << 10);
  units[('a' ^ 1) ^ 0x80] = value | (1U << 31);
  std::string blob = number(static_cast<std::uint32_t>(units.size() * 4));
  for (const std::uint32_t unit : units) blob += number(unit);
  return blob + std::string("X\0\xC3\xA9", 4);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tokenizer_text_parts)

BOOST_AUTO_TEST_CASE(malformed_utf8_becomes_one_replacement_for_every_maximal_subpart) {
  const std::string mark = "\xEF\xBF\xBD";
  BOOST_TEST(valid_utf8("a\xFF"
                        "b") == "a" + mark + "b");
  BOOST_TEST(valid_utf8("\xE2\x82") == mark);
  BOOST_TEST(valid_utf8("\xF0\x80\x80") == mark + mark + mark);  // overlong
  BOOST_TEST(valid_utf8("\xED\xA0\x80") == mark + mark + mark);  // surrogate
  BOOST_TEST(valid_utf8("\xF4\x90\x80\x80") == mark + mark + mark + mark);
  // Table 3-8 of the Unicode standard.
  BOOST_TEST(valid_utf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64") ==
             "a" + mark + mark + mark + "b" + mark + "c" + mark + mark + "d");
}

BOOST_AUTO_TEST_CASE(normal_forms_follow_annex_15) {
  BOOST_TEST(normal_form("e\xCC\x81", NormalForm::kNfc) == "\xC3\xA9");
  BOOST_TEST(normal_form("\xC3\xA9", NormalForm::kNfd) == "e\xCC\x81");
  BOOST_TEST(normal_form("\xEF\xAC\x81", NormalForm::kNfc) == "\xEF\xAC\x81");
  BOOST_TEST(normal_form("\xEF\xAC\x81", NormalForm::kNfkc) == "fi");
  BOOST_TEST(normal_form("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", NormalForm::kNfc) ==
             "\xEA\xB0\x81");
  // U+1E0B U+0323 reorders to d, dot below, dot above.
  BOOST_TEST(normal_form("\xE1\xB8\x8B\xCC\xA3", NormalForm::kNfc) == "\xE1\xB8\x8D\xCC\x87");
  BOOST_TEST(normal_form("\xE1\xB8\x8B\xCC\xA3", NormalForm::kNfkd) == "d\xCC\xA3\xCC\x87");
  // A mark of the same class in between blocks.
  BOOST_TEST(normal_form("a\xCC\x82\xCC\x87\xCC\x81", NormalForm::kNfc) ==
             "\xC3\xA2\xCC\x87\xCC\x81");
  BOOST_TEST(normal_form("\xE3\x8B\xBF", NormalForm::kNfkc) == "\xE3\x8B\xBF");  // younger than 12
}

BOOST_AUTO_TEST_CASE(a_long_run_of_marks_is_sorted_completely) {
  std::string text = "a", low, high;
  for (int i = 0; i < 20000; ++i) {
    text += "\xCC\x81\xCC\xA3";  // classes 230 and 220
    low += "\xCC\xA3";
    high += "\xCC\x81";
  }
  BOOST_TEST((normal_form(text, NormalForm::kNfd) == "a" + low + high));
}

BOOST_AUTO_TEST_CASE(lower_case_looks_at_single_characters) {
  BOOST_TEST(lower_case("A\xC3\x89\xD0\x96") == "a\xC3\xA9\xD0\xB6");
  BOOST_TEST(lower_case("\xC4\xB0") == "i\xCC\x87");
  BOOST_TEST(lower_case("\xCE\x91\xCE\xA3") == "\xCE\xB1\xCF\x83");  // no final sigma
  BOOST_TEST(lower_case("\xE1\xB2\x89") == "\xE1\xB2\x8A");          // Unicode 16
}

BOOST_AUTO_TEST_CASE(grapheme_clusters_keep_marks_joiners_and_flags) {
  BOOST_TEST(grapheme_end("e\xCC\x81x", 0) == 3U);
  BOOST_TEST(grapheme_end("\r\nx", 0) == 2U);
  BOOST_TEST(grapheme_end("\n\xCC\x81", 0) == 1U);
  BOOST_TEST(grapheme_end("\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA\xF0\x9F\x87\xAF", 0) == 8U);
  BOOST_TEST(grapheme_end("a\xE1\xAB\x8F", 0) == 4U);  // U+1ACF, Unicode 17
}

BOOST_AUTO_TEST_CASE(patterns_find_all_matches_from_left_to_right) {
  BOOST_TEST(matches("\\p{L}+|\\p{N}", "ab 12\xC3\xA9") == "<ab><1><2><\xC3\xA9>");
  BOOST_TEST(matches("\\s+(?!\\S)|\\s+", "a   b ") == "<  >< >< >");
  BOOST_TEST(matches("b*", "abc") == "<><b><>");
  BOOST_TEST(matches("", "\xC3\xA9") == "<><>");
}

BOOST_AUTO_TEST_CASE(patterns_know_letters_of_unicode_16) {
  const std::string garay = "\xF0\x90\xB5\x8A";  // U+10D4A, general category Lo
  BOOST_TEST(matches("\\p{L}", garay) == "<" + garay + ">");
  BOOST_TEST(matches("[^\\s\\p{L}\\p{N}]", garay) == "");
  BOOST_TEST(matches("\\P{L}|\\p{^L}|\\W|[\\W]", garay) == "");
  BOOST_TEST(matches("\\w", garay) == "<" + garay + ">");
  BOOST_TEST(matches("[[:alpha:]\\w]", garay) == "<" + garay + ">");
  BOOST_TEST(matches("\\p{Lu}", garay) == "");
  BOOST_TEST(matches("\\\\w", "\\w" + garay) == "<\\w>");
}

BOOST_AUTO_TEST_CASE(literal_patterns_match_their_text_only) {
  const Regex regex = Regex::literal("a.(b)[c]{2}\\", "test");
  BOOST_TEST(matches_of(regex, "a.(b)[c]{2}\\ axbcc").size() == 1U);
}

BOOST_AUTO_TEST_CASE(patterns_that_do_not_compile_or_explode_are_errors) {
  BOOST_CHECK_THROW(Regex::compile("(a", "test"), TextError);
  BOOST_CHECK_THROW(Regex::compile("[z-a]", "test"), TextError);
  BOOST_CHECK_THROW(Regex::compile(std::string(10000, 'a'), "test"), TextError);
  BOOST_CHECK_THROW(
      matches_of(Regex::compile("(?:a*)*b|(a|aa)+$", "test"), std::string(200, 'a') + "c"),
      TextError);
}

BOOST_AUTO_TEST_CASE(all_searches_in_a_text_share_one_allowance) {
  // Each of them looks to the end, and goes back from there: more than a small share, but far less
  // than one search may.
  const Regex pattern = Regex::compile("a(?=[a!]*[!?])|a", "test");
  BOOST_TEST(matches_of(pattern, std::string(100, 'a')).size() == 100U);
  BOOST_CHECK_THROW(matches_of(pattern, std::string(20000, 'a')), TextError);
}

BOOST_AUTO_TEST_CASE(a_loop_remembers_as_much_as_its_text_is_long) {
  const std::string text(400000, 'a');
  const Regex loop = Regex::compile("a+(?!b)", "test");
  {
    const HeapPeak heap;
    BOOST_TEST(matches_of(loop, text).size() == 1U);
    BOOST_TEST(heap.bytes() < 100 * std::int64_t(text.size()));
  }
  // Nothing can follow a class that ends an alternative.
  for (const char* pattern : {"\\p{L}+", "x|[^\\s\\p{N}]+|y", ".*", "(?i:'s|'t)|[\\r\\n\\p{L}]+"}) {
    const HeapPeak heap;
    BOOST_TEST(matches_of(Regex::compile(pattern, "test"), text).front().end == text.size());
    BOOST_TEST(heap.bytes() < 100000, pattern);
  }
  BOOST_CHECK_THROW(matches_of(Regex::compile("(?:(?:a|b)|c)+(?!b)", "test"), text), TextError);
}

BOOST_AUTO_TEST_CASE(quantifiers_give_nothing_back_only_where_nobody_asks_for_it) {
  BOOST_TEST(possessive_pattern("\\p{L}+|\\s*") == "\\p{L}++|\\s*+");
  BOOST_TEST(possessive_pattern("[^a+|]+|[+]+") == "[^a+|]++|[+]++");
  for (const char* pattern :
       {"\\s+(?!\\S)", "(\\s+|b)c", "a+", "\\p{L}+?", "\\p{L}++", "\\s{2,}+", "(a\\g<0>)|\\s+",
        "(?x)(\\s+ # )\n|b)c|\\s+", "(?#()\\s+", "\\++", "[\\]+"})
    BOOST_TEST(possessive_pattern(pattern) == pattern);
}

BOOST_AUTO_TEST_CASE(trie_finds_the_longest_key_and_keeps_the_last_of_equal_ones) {
  const PieceTrie trie({{"ab", 1}, {"abcd", 2}, {"b", 3}, {"ab", 4}, {"", 5}});
  BOOST_TEST(trie.longest_prefix("abcx").length == 2U);
  BOOST_TEST(trie.longest_prefix("abcx").value == 4);
  BOOST_TEST(trie.longest_prefix("abcde").value == 2);
  BOOST_TEST(trie.longest_prefix("x").length == 0U);
  BOOST_TEST(trie.longest_prefix("").length == 0U);
}

BOOST_AUTO_TEST_CASE(character_map_replaces_by_its_rule) {
  const Charsmap map = Charsmap::parse(one_rule_map(0), "test");
  BOOST_TEST(map.longest_prefix("ab")->replacement == "X");
  BOOST_TEST(map.longest_prefix("ab")->length == 1U);
  BOOST_TEST(!map.longest_prefix("b"));
  BOOST_TEST(!map.longest_prefix(std::string_view("\0a", 2)));
  BOOST_TEST(Charsmap::parse(one_rule_map(2), "test").shortest_prefix("a")->replacement ==
             "\xC3\xA9");
}

BOOST_AUTO_TEST_CASE(character_map_with_wrong_indices_has_no_rule) {
  BOOST_TEST(!Charsmap::parse(one_rule_map(3), "test").longest_prefix("a"));  // inside a character
  BOOST_TEST(!Charsmap::parse(one_rule_map(1000), "test").longest_prefix("a"));  // behind the texts
  BOOST_TEST(!Charsmap::parse(one_rule_map(0, 0x1FFF00), "test").longest_prefix("a"));
}

BOOST_AUTO_TEST_CASE(character_map_that_is_not_whole_is_an_error) {
  const std::string blob = one_rule_map(0);
  BOOST_CHECK_THROW(Charsmap::parse("", "test"), TextError);
  BOOST_CHECK_THROW(Charsmap::parse("\1\1\1", "test"), TextError);
  BOOST_CHECK_THROW(Charsmap::parse(blob.substr(0, 500), "test"), TextError);
  BOOST_CHECK_THROW(Charsmap::parse(number(0), "test"), TextError);
  BOOST_CHECK_THROW(Charsmap::parse(number(4) + "abcd\xFF", "test"), TextError);
}

BOOST_AUTO_TEST_CASE(base64_is_decoded_or_refused) {
  BOOST_TEST(decode_base64("aGVkZGxl", "test") == "heddle");
  BOOST_TEST(decode_base64("aGVkZA==", "test") == "hedd");
  BOOST_TEST(decode_base64("+/8=", "test") == "\xFB\xFF");
  for (const char* bad : {"a", "ab=c", "a===", "ab c", "====", "aGVkZGx\xC3"}) {
    BOOST_CHECK_THROW(decode_base64(bad, "test"), TextError);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::text
