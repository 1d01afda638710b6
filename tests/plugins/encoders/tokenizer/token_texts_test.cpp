// The text that ids stand for: that of which they were made, without special tokens.
#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plugins/encoders/shipped_vocabularies.h"
#include "plugins/encoders/tokenizer/token_texts.h"
#include "plugins/encoders/tokenizer/tokenizer_json.h"
#include "tokenizer_folder.h"

namespace heddle::text {
namespace {

Tokenizer shipped(std::string_view encoder, std::int64_t rows) {
  const encoders::ShippedVocabulary& vocabulary = *encoders::find_shipped(encoder, rows);
  return with_json(vocabulary.rules, [&](JsonView root) {
    return read_tokenizer_json(root, std::string(vocabulary.name), vocabulary.packed);
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(token_texts)

BOOST_AUTO_TEST_CASE(byte_level_pieces_become_their_bytes) {
  const Tokenizer tokenizer = shipped("qwen3", 151936);
  const TokenTexts texts(tokenizer);
  for (const std::string text : {"", "a red fox, 3 times!", "  two\n\n\tlines ", "W\xC3\xB6rld",
                                 "\xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\xA6\x8A"})
    BOOST_TEST(texts.text(tokenizer.encode(text)) == text);
}

BOOST_AUTO_TEST_CASE(special_tokens_and_unknown_ids_are_left_out_and_broken_characters_replaced) {
  const Tokenizer tokenizer = shipped("qwen3", 151936);
  const TokenTexts texts(tokenizer);
  BOOST_TEST(texts.text(tokenizer.encode("<|im_start|>user\nso<think>no</think><|im_end|>")) ==
             "user\nso<think>no</think>");
  BOOST_TEST(texts.text(std::vector<std::int32_t>{-1, 2000000000}) == "");
  // The token of the byte 0xF0, with which characters of four bytes begin.
  const std::optional<std::int32_t> begin = tokenizer.find("\xC3\xB0");
  BOOST_TEST_REQUIRE(begin.has_value());
  BOOST_TEST(texts.text(std::vector{*begin}) == "\xEF\xBF\xBD");
}

BOOST_AUTO_TEST_CASE(marks_of_sentencepiece_become_spaces) {
  const Tokenizer tokenizer = shipped("t5xxl", 32128);
  BOOST_TEST(TokenTexts(tokenizer).text(tokenizer.encode("a red fox")) == " a red fox");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::text
