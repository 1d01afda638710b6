// CLIP's two files, in small. Expectations follow from CLIP's rules: NFC, white space collapsed,
// lower case, words.
#include "plugins/encoders/tokenizer/vocab_merges.h"

#include <boost/test/unit_test.hpp>

#include "plugins/encoders/tokenizer/text_error.h"
#include "plugins/encoders/tokenizer/tokenizer_config.h"
#include "tokenizer_folder.h"

namespace heddle::text {
BOOST_AUTO_TEST_SUITE(vocab_merges)

namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::string_view kVocabulary =
    R"({"a":0,"b":1,"a</w>":2,"b</w>":3,"ab</w>":4,"1</w>":5,"'":6,"s</w>":7,"'s</w>":8,"!":9,"!</w>":10,
        "Ã":11,"©</w>":12,"<|startoftext|>":20,"<|endoftext|>":21})";
constexpr std::string_view kMerges = "#version: 0.2\na b</w>\r\n' s</w>\n";

void check(std::string_view text, const Ids& expected) {
  const Ids ids = load_clip_files(kVocabulary, kMerges).encode(text);
  BOOST_CHECK_EQUAL_COLLECTIONS(ids.begin(), ids.end(), expected.begin(), expected.end());
}

void check_error(std::string_view vocabulary, std::string_view merges, const std::string& part) {
  std::string error = "no error";
  try {
    load_clip_files(vocabulary, merges);
  } catch (const TextError& found) {
    error = found.what();
  }
  BOOST_TEST(error.find(part) != std::string::npos, error << " does not contain " << part);
}

}  // namespace

BOOST_AUTO_TEST_CASE(words_are_lower_case_and_end_with_the_suffix) {
  check("AB  a\n b", {4, 2, 3});
  check("ab's!!", {4, 8, 9, 10});
  check("11", {5, 5});
  check("e\xCC\x81", {11, 12});
}

BOOST_AUTO_TEST_CASE(special_tokens_are_found_in_texts) {
  check("a<|endoftext|>b", {2, 21, 3});
  const Tokenizer tokenizer = load_clip_files(kVocabulary, kMerges);
  BOOST_TEST(tokenizer.prefix() == Ids{20}, boost::test_tools::per_element());
  BOOST_TEST(tokenizer.suffix() == Ids{21}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(files_that_do_not_fit_are_errors) {
  check_error(kVocabulary, "a b</w> c", "merges.txt:1: expects two tokens");
  check_error(kVocabulary, "#version: 0.2\nab\n", "merges.txt:2");
  check_error(kVocabulary, "a 1</w>\n", "needs the token 'a1</w>'");
  check_error(R"({"a":0})", "", "has no token '<|startoftext|>'");
  check_error("[]", "", "expects an object");
  check_error(R"({"a":"0"})", "", "vocab.json.a: expects a number");
}

BOOST_AUTO_TEST_CASE(configuration_gives_length_and_tokens) {
  const auto read = [](std::string_view json) {
    return with_json(json, [](JsonView root) { return read_tokenizer_config(root, "config"); });
  };
  const TokenizerConfig config =
      read(R"({"model_max_length":64,"bos_token":null,"pad_token":{"content":"!"}})");
  BOOST_TEST(config.model_max_length.value() == 64U);
  BOOST_TEST(config.clip_tokens().padding == "!");
  BOOST_TEST(config.clip_tokens().begin == "<|startoftext|>");
  BOOST_TEST(!read(R"({"model_max_length":1e30})").model_max_length.has_value());
  BOOST_CHECK_THROW(read(R"({"model_max_length":0})"), TextError);
  BOOST_CHECK_THROW(read(R"({"model_max_length":"x"})"), TextError);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::text
