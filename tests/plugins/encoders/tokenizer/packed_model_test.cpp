// Packed vocabularies byte by byte, and damaged ones.
#include "plugins/encoders/tokenizer/packed_model.h"

#include <boost/test/unit_test.hpp>
#include <functional>

#include "plugins/encoders/tokenizer/text_error.h"

namespace heddle::text {
BOOST_AUTO_TEST_SUITE(packed_model)

using namespace std::string_literals;

namespace {

BpeOptions unpacked(const std::string& packed, const std::string& suffix) {
  BpeOptions options;
  options.end_of_word_suffix = suffix;
  read_packed_merges(packed, "made", options);
  return options;
}

void check_damaged(const std::string& what, const std::function<void()>& body) {
  std::string error = "no error";
  try {
    body();
  } catch (const TextError& found) {
    error = found.what();
  }
  BOOST_TEST(error.find("made: the packed vocabulary is damaged") == 0u, what << ": " << error);
}

}  // namespace

BOOST_AUTO_TEST_CASE(merges_count_from_behind_the_bytes) {
  // '!' + '"', and that with '#': ids 0, 1 and 2 are the first printable bytes.
  const BpeOptions options = unpacked("\x00\x01\x80\x02\x02"s, "");
  BOOST_TEST(options.vocabulary.size() == 258u);
  BOOST_TEST(options.vocabulary.find("!").value() == 0);
  BOOST_TEST(options.vocabulary.find("\xC5\x83").value() == 255);  // of byte 0xAD, the last
  BOOST_TEST(options.vocabulary.find("!\"").value() == 256);
  BOOST_TEST(options.vocabulary.find("!\"#").value() == 257);
  BOOST_REQUIRE(options.merged_ids.size() == 2u);
  BOOST_TEST(options.merged_ids[1].left == 256);
  BOOST_TEST(options.merged_ids[1].right == 2);
  BOOST_TEST(options.merged_ids[1].merged == 257);
}

BOOST_AUTO_TEST_CASE(a_suffix_of_words_doubles_the_bytes) {
  const BpeOptions options = unpacked("\x00\x81\x02"s, "</w>");
  BOOST_TEST(options.vocabulary.find("\"</w>").value() == 257);
  BOOST_TEST(options.vocabulary.find("!\"</w>").value() == 512);
}

BOOST_AUTO_TEST_CASE(pieces_have_a_score_and_bytes) {
  const auto pieces = read_packed_pieces(
      "\x00\x00\x80\xBF\x02"
      "ab\x00\x00\x00\x00\x00"s,
      "made");
  BOOST_REQUIRE(pieces.size() == 2u);
  BOOST_TEST(pieces[0].text == "ab");
  BOOST_TEST(pieces[0].score == -1.0);
  BOOST_TEST(pieces[1].text.empty());
}

BOOST_AUTO_TEST_CASE(damaged_ones_are_refused) {
  check_damaged("half a merge", [] { unpacked("\x00"s, ""); });
  check_damaged("an id that is made later", [] { unpacked("\x00\x80\x02"s, ""); });
  check_damaged("a number without an end", [] { unpacked("\xFF\xFF\xFF\xFF\xFF\xFF"s, ""); });
  check_damaged("half a score", [] { read_packed_pieces("\x00\x00"s, "made"); });
  check_damaged("a piece that is cut", [] {
    read_packed_pieces(
        "\x00\x00\x80\xBF\x05"
        "ab"s,
        "made");
  });
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace heddle::text
