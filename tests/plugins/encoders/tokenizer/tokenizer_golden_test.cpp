// Ids of 10,000 strings against the `tokenizers`, `sentencepiece` and `transformers` packages:
// hashes of every 100 strings and the ids of some. After the model of graphs/models was trained
// again, its goldens are written anew by
//   make_goldens.py write clip=graphs/models/diffusers/tiny-scenes/tokenizer t5=.../tokenizer_2
// Those of the vocabularies that ship come from vocabulary_goldens.py.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "plugins/encoders/shipped_vocabularies.h"
#include "plugins/encoders/tokenizer/tokenizer_json.h"
#include "test_strings.h"
#include "tokenizer_folder.h"

namespace heddle::text {
namespace {

constexpr std::uint64_t kSeed = 1;     // of the goldens
constexpr std::uint64_t kBatch = 100;  // strings in one hash
const std::string kData = std::string(HEDDLE_SOURCE_DIR) + "/tests/plugins/encoders/tokenizer/data";
const std::string kModel = std::string(HEDDLE_SOURCE_DIR) + "/graphs/models/diffusers/tiny-scenes";

// FNV-1a, 64 bits, over the number of ids and the ids, each as four bytes from the lowest.
std::uint64_t hashed(std::uint64_t hash, const std::vector<std::int32_t>& ids) {
  const auto add = [&](std::uint32_t number) {
    for (int i = 0; i < 4; ++i) hash = (hash ^ ((number >> (8 * i)) & 0xFF)) * 0x100000001B3;
  };
  add(static_cast<std::uint32_t>(ids.size()));
  for (const std::int32_t id : ids) add(static_cast<std::uint32_t>(id));
  return hash;
}

void check_hash(const Tokenizer& tokenizer, const TestStrings& strings, std::istream& line) {
  std::uint64_t first = 0, expected = 0, hash = 0xCBF29CE484222325;
  line >> first >> std::hex >> expected;
  for (std::uint64_t i = first; i < first + kBatch; ++i) {
    hash = hashed(hash, tokenizer.encode(strings.at(i)));
  }
  BOOST_TEST(hash == expected, "strings " << first << " to " << first + kBatch - 1 << " differ");
}

Tokenizer load_shipped(const encoders::ShippedVocabulary& vocabulary) {
  return with_json(vocabulary.rules, [&](JsonView root) {
    return read_tokenizer_json(root, std::string(vocabulary.name), vocabulary.packed);
  });
}

void check_ids(const Tokenizer& tokenizer, const TestStrings& strings, std::istream& line) {
  std::uint64_t index = 0;
  line >> index;
  std::vector<std::int32_t> expected;
  for (std::int32_t id = 0; line >> id;) expected.push_back(id);
  const auto ids = tokenizer.encode(strings.at(index));
  BOOST_TEST_CONTEXT("string " << index) {
    BOOST_CHECK_EQUAL_COLLECTIONS(ids.begin(), ids.end(), expected.begin(), expected.end());
  }
}

void check_goldens(const std::string& name, const Tokenizer& tokenizer, const std::string& route) {
  const TestStrings strings(kData + "/string_source.json", kSeed);
  std::ifstream goldens(kData + "/goldens/" + name + "." + route + ".txt");
  std::size_t hashes = 0, lists = 0;
  for (std::string line; std::getline(goldens, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "hash") {
      check_hash(tokenizer, strings, words);
      ++hashes;
    } else if (kind == "ids") {
      check_ids(tokenizer, strings, words);
      ++lists;
    }
  }
  BOOST_TEST(hashes == 100U);
  BOOST_TEST(lists > 50U);
}

void check_goldens(const std::string& name, const std::string& folder, const std::string& route) {
  check_goldens(name, load_folder(folder, route_of(route)), route);
}

boost::test_tools::assertion_result has_model(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(std::filesystem::exists(kModel + "/tokenizer"));
  result.message() << kModel << " is not there";
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tokenizer_golden)

BOOST_AUTO_TEST_CASE(trained_byte_level_bpe_gives_the_ids_of_tokenizers) {
  check_goldens("bpe_8000", kData + "/bpe_8000", "json");
}

BOOST_AUTO_TEST_CASE(trained_unigram_with_precompiled_map_gives_the_ids_of_tokenizers) {
  check_goldens("unigram_8000", kData + "/unigram_8000", "json");
}

BOOST_AUTO_TEST_CASE(trained_unigram_model_gives_the_ids_of_sentencepiece) {
  check_goldens("unigram_8000", kData + "/unigram_8000", "spiece");
}

BOOST_AUTO_TEST_CASE(clip_tokenizer_json_of_the_model_gives_the_ids_of_tokenizers,
                     *boost::unit_test::precondition(has_model)) {
  check_goldens("clip", kModel + "/tokenizer", "json");
}

BOOST_AUTO_TEST_CASE(clip_vocab_and_merges_of_the_model_give_the_ids_of_transformers,
                     *boost::unit_test::precondition(has_model)) {
  check_goldens("clip", kModel + "/tokenizer", "vocab");
}

BOOST_AUTO_TEST_CASE(t5_tokenizer_json_of_the_model_gives_the_ids_of_tokenizers,
                     *boost::unit_test::precondition(has_model)) {
  check_goldens("t5", kModel + "/tokenizer_2", "json");
}

BOOST_AUTO_TEST_CASE(t5_spiece_model_of_the_model_gives_the_ids_of_sentencepiece,
                     *boost::unit_test::precondition(has_model)) {
  check_goldens("t5", kModel + "/tokenizer_2", "spiece");
}

BOOST_AUTO_TEST_CASE(shipped_vocabularies_give_the_ids_of_tokenizers) {
  for (const encoders::ShippedVocabulary& one : encoders::shipped_vocabularies())
    check_goldens("shipped_" + std::string(one.name), load_shipped(one), "json");
}

BOOST_AUTO_TEST_CASE(shipped_vocabularies_have_the_published_sizes_and_special_tokens) {
  const auto tokenizer = [](std::string_view encoder, std::int64_t rows) {
    return load_shipped(*encoders::find_shipped(encoder, rows));
  };
  using Ids = std::vector<std::int32_t>;
  const Tokenizer clip = tokenizer("clip_l", 49408), t5 = tokenizer("t5xxl", 32128),
                  qwen = tokenizer("qwen2.5", 152064);
  BOOST_TEST(clip.id_count() == 49408u);
  BOOST_TEST((clip.prefix() == Ids{49406} && clip.suffix() == Ids{49407}));
  BOOST_TEST(clip.find("<|endoftext|>").value() == 49407);
  BOOST_TEST(t5.id_count() == 32100u);
  BOOST_TEST((t5.prefix().empty() && t5.suffix() == Ids{1}));
  BOOST_TEST(t5.find("<extra_id_0>").value() == 32099);
  BOOST_TEST(qwen.id_count() == 151669u);
  BOOST_TEST((qwen.prefix().empty() && qwen.suffix().empty()));
  BOOST_TEST(qwen.find("<|endoftext|>").value() == 151643);
  BOOST_TEST(qwen.find("<|im_start|>").value() == 151644);
  const Tokenizer byt5 = tokenizer("byt5", 1510);
  BOOST_TEST(byt5.id_count() == 384u);
  BOOST_TEST((byt5.prefix().empty() && byt5.suffix() == Ids{1}));
  BOOST_TEST((byt5.encode("a\xc3\xa9<pad>") == Ids{100, 198, 172, 0}));
  BOOST_TEST(byt5.find("<extra_id_124>").value() == 383);
  const Tokenizer qwen3 = tokenizer("qwen3", 151936);
  BOOST_TEST(qwen3.id_count() == 151669u);
  BOOST_TEST((qwen3.encode("<think>\n\n</think>\n\n") == Ids{151667, 271, 151668, 271}));
  for (const encoders::ShippedVocabulary& one : encoders::shipped_vocabularies())
    BOOST_TEST(load_shipped(one).find(one.config().padding.value()).has_value());
}

BOOST_AUTO_TEST_CASE(shipped_vocabularies_are_for_tables_of_their_size) {
  const auto found = [](std::string_view encoder, std::int64_t rows) {
    return encoders::find_shipped(encoder, rows) != nullptr;
  };
  for (const char* encoder : {"clip_l", "clip_h", "clip_g"}) BOOST_TEST(found(encoder, 49408));
  BOOST_TEST((!found("clip_l", 49407) && !found("clip_l", 32128)));
  BOOST_TEST((found("t5xxl", 32100) && found("t5xxl", 32128)));
  BOOST_TEST((!found("t5xxl", 32099) && !found("t5xxl", 256384)));  // umT5's
  BOOST_TEST((found("qwen2.5", 151936) && found("qwen2.5", 152064) && !found("qwen2.5", 151668)));
  BOOST_TEST((found("byt5", 384) && found("byt5", 1510) && !found("byt5", 259)));
  BOOST_TEST(!found("gemma", 49408));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::text
