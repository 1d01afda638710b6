// A SentencePiece BPE model against the ids that the package gives, and the texts that transformers
// makes of ids (make_bpe_goldens.py).
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <sstream>

#include "plugins/encoders/tokenizer/spiece.h"
#include "plugins/encoders/tokenizer/token_texts.h"
#include "tests/plugins/encoders/tokenizer/rapid_json_view.h"

namespace heddle::text {
BOOST_AUTO_TEST_SUITE(spiece_bpe)

namespace {

std::string data(const char* name) {
  std::ifstream file(
      std::string(HEDDLE_SOURCE_DIR) + "/tests/plugins/encoders/tokenizer/data/" + name,
      std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

}  // namespace

BOOST_AUTO_TEST_CASE(texts_have_the_ids_of_sentencepiece) {
  const Tokenizer tokenizer = read_spiece(data("bpe.model"), "bpe.model");
  with_json(data("bpe.json"), [&](JsonView golden) {
    BOOST_TEST(golden.size() > 60u);
    for (std::size_t i = 0; i < golden.size(); ++i) {
      std::vector<std::int32_t> wanted;
      for (std::size_t k = 0; k < golden.item(i).size(); ++k)
        wanted.push_back(static_cast<std::int32_t>(*golden.item(i).item(k).as_int()));
      BOOST_TEST(tokenizer.encode(golden.key(i)) == wanted, "'" << golden.key(i) << "'");
    }
  });
}

BOOST_AUTO_TEST_CASE(ids_become_the_texts_of_transformers_without_special_tokens) {
  const TokenTexts texts(read_spiece(data("bpe.model"), "bpe.model"));
  with_json(data("bpe_texts.json"), [&](JsonView golden) {
    BOOST_TEST(golden.size() > 90u);
    for (std::size_t i = 0; i < golden.size(); ++i) {
      std::vector<std::int32_t> ids;
      for (std::size_t k = 0; k < golden.item(i).size(); ++k)
        ids.push_back(static_cast<std::int32_t>(*golden.item(i).item(k).as_int()));
      BOOST_TEST(texts.text(ids) == golden.key(i));
    }
  });
  // The end, the unknown piece and two spaces.
  BOOST_TEST(texts.text(std::vector<std::int32_t>{1, 3, 6}) == "  ");
}

BOOST_AUTO_TEST_CASE(the_begin_piece_may_be_written_and_nothing_is_put_around_a_text) {
  const Tokenizer tokenizer = read_spiece(data("bpe.model"), "bpe.model");
  const std::vector<std::int32_t> with = tokenizer.encode("<bos>fox"),
                                  alone = tokenizer.encode("fox");
  BOOST_TEST_REQUIRE(with.size() == alone.size() + 1);
  BOOST_TEST(with.front() == 2);
  BOOST_TEST((std::vector(with.begin() + 1, with.end()) == alone));
  BOOST_TEST((tokenizer.prefix().empty() && tokenizer.suffix().empty()));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace heddle::text
