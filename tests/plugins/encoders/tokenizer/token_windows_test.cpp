// A toy tokenizer with one token for every letter: "a" is 0, "b" is 1, ...; 30 starts, 31 ends.
#include "plugins/encoders/tokenizer/token_windows.h"

#include <boost/test/unit_test.hpp>
#include <ostream>

#include "collected.h"
#include "plugins/encoders/tokenizer/text_error.h"
#include "tokenizer_folder.h"

namespace heddle::text {

std::ostream& operator<<(std::ostream& out, const WeightedToken& token) {
  return out << token.id << '*' << token.weight;
}

BOOST_AUTO_TEST_SUITE(token_windows_suite)

namespace {

constexpr std::int32_t kStart = 30, kEnd = 31, kPad = 40;

Tokenizer letters() {
  std::string vocabulary;
  for (int i = 0; i < 26; ++i) {
    vocabulary +=
        '"' + std::string(1, static_cast<char>('a' + i)) + "\":" + std::to_string(i) + ",";
  }
  return load_tokenizer_json(
      R"({"pre_tokenizer":{"type":"WhitespaceSplit"},
          "post_processor":{"type":"RobertaProcessing","cls":["<s>",30],"sep":["</s>",31]},
          "model":{"type":"BPE","merges":[],"vocab":{)" +
      vocabulary + R"("<s>":30,"</s>":31}}})");
}

void check(const TokenWindow& window, const TokenWindow& expected) {
  BOOST_CHECK_EQUAL_COLLECTIONS(window.begin(), window.end(), expected.begin(), expected.end());
}

TokenWindow clip_window(const TokenWindow& text) {
  TokenWindow window{{kStart, 1.0}};
  window.insert(window.end(), text.begin(), text.end());
  window.push_back({kEnd, 1.0});
  window.resize(kClipWindow, {kPad, 1.0});
  return window;
}

TokenWindow repeated(std::size_t count, std::int32_t id, double weight = 1.0) {
  return TokenWindow(count, {id, weight});
}

TokenWindow joined(TokenWindow left, const TokenWindow& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

}  // namespace

BOOST_AUTO_TEST_CASE(empty_prompt_is_one_window_of_start_end_and_padding) {
  const Tokenizer tokenizer = letters();
  const auto windows = windows_of(tokenizer, "", clip_window_rules(tokenizer, kPad));
  BOOST_TEST(windows.size() == 1U);
  check(windows.at(0), clip_window({}));
}

BOOST_AUTO_TEST_CASE(tokens_carry_the_weight_of_their_segment) {
  const Tokenizer tokenizer = letters();
  const auto windows = windows_of(tokenizer, "a (bc:1.5) d", clip_window_rules(tokenizer, kPad));
  BOOST_TEST(windows.size() == 1U);
  check(windows.at(0), clip_window({{0, 1.0}, {1, 1.5}, {2, 1.5}, {3, 1.0}}));
}

BOOST_AUTO_TEST_CASE(unweighted_prompt_of_100_tokens_is_cut_after_75) {
  const Tokenizer tokenizer = letters();
  const auto windows =
      windows_of(tokenizer, std::string(100, 'a'), clip_window_rules(tokenizer, kPad));
  BOOST_TEST(windows.size() == 2U);
  check(windows.at(0), clip_window(repeated(75, 0)));
  check(windows.at(1), clip_window(repeated(25, 0)));
}

BOOST_AUTO_TEST_CASE(prompt_of_75_tokens_fills_one_window) {
  const Tokenizer tokenizer = letters();
  const auto windows =
      windows_of(tokenizer, std::string(75, 'a'), clip_window_rules(tokenizer, kPad));
  BOOST_TEST(windows.size() == 1U);
  check(windows.at(0), clip_window(repeated(75, 0)));
}

BOOST_AUTO_TEST_CASE(segment_of_less_than_8_tokens_moves_to_the_next_window) {
  const Tokenizer tokenizer = letters();
  const auto windows = windows_of(tokenizer, std::string(70, 'a') + "(bbbbbbb:2)",
                                  clip_window_rules(tokenizer, kPad));
  BOOST_TEST(windows.size() == 2U);
  check(windows.at(0), clip_window(repeated(70, 0)));
  check(windows.at(1), clip_window(repeated(7, 1, 2.0)));
}

BOOST_AUTO_TEST_CASE(segment_of_8_tokens_is_cut_where_the_window_is_full) {
  const Tokenizer tokenizer = letters();
  const auto windows = windows_of(tokenizer, std::string(70, 'a') + "(bbbbbbbb:2)",
                                  clip_window_rules(tokenizer, kPad));
  BOOST_TEST(windows.size() == 2U);
  check(windows.at(0), clip_window(joined(repeated(70, 0), repeated(5, 1, 2.0))));
  check(windows.at(1), clip_window(repeated(3, 1, 2.0)));
}

BOOST_AUTO_TEST_CASE(short_segment_that_no_window_holds_is_cut) {
  const Tokenizer tokenizer = letters();
  const auto windows = windows_of(tokenizer, "abcd", clip_window_rules(tokenizer, kPad, 5));
  BOOST_TEST(windows.size() == 2U);
  check(windows.at(0), {{kStart, 1}, {0, 1}, {1, 1}, {2, 1}, {kEnd, 1}});
  check(windows.at(1), {{kStart, 1}, {3, 1}, {kEnd, 1}, {kPad, 1}, {kPad, 1}});
}

BOOST_AUTO_TEST_CASE(t5_has_one_window_of_at_least_256_tokens) {
  const Tokenizer tokenizer = letters();
  const WindowRules rules = t5_window_rules(tokenizer, kPad);
  const auto small = windows_of(tokenizer, "(a:0.5)", rules);
  BOOST_TEST(small.size() == 1U);
  TokenWindow expected{{0, 0.5}, {kEnd, 1.0}};
  expected.resize(256, {kPad, 1.0});
  check(small.at(0), expected);

  const auto large = windows_of(tokenizer, std::string(300, 'a'), rules);
  BOOST_TEST(large.size() == 1U);
  check(large.at(0), joined(repeated(300, 0), {{kEnd, 1.0}}));
}

BOOST_AUTO_TEST_CASE(t5_least_length_follows_the_folder) {
  const Tokenizer tokenizer = letters();
  const auto windows = windows_of(tokenizer, "ab", t5_window_rules(tokenizer, 0, 64));
  BOOST_TEST(windows.at(0).size() == 64U);
}

BOOST_AUTO_TEST_CASE(clip_rules_need_start_and_end_and_room) {
  const Tokenizer plain =
      load_tokenizer_json(R"({"model":{"type":"BPE","merges":[],"vocab":{"a":0}}})");
  BOOST_CHECK_THROW(clip_window_rules(plain, 0), TextError);
  BOOST_CHECK_THROW(clip_window_rules(letters(), 0, 2), TextError);
}

BOOST_AUTO_TEST_CASE(windows_without_room_for_text_are_refused) {
  const Tokenizer tokenizer = letters();
  WindowRules rules = t5_window_rules(tokenizer, kPad);
  rules.length = 1;  // for the end
  BOOST_CHECK_THROW(windows_of(tokenizer, "a", rules), TextError);
  rules.length = 2;
  BOOST_TEST(windows_of(tokenizer, "ab", rules).size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::text
