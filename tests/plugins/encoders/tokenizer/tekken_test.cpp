// A small tekken.json against its rule, written down slowly: of all neighbours, those whose bytes
// together are the token of the lowest rank become one, until there are none.
#include "plugins/encoders/tokenizer/tekken.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <random>

#include "plugins/encoders/tokenizer/text_error.h"
#include "tests/plugins/encoders/tokenizer/rapid_json_view.h"

namespace heddle::text {
BOOST_AUTO_TEST_SUITE(tekken)

namespace {

constexpr std::int32_t kSpecials = 4;

std::string base64(const std::string& bytes) {
  const char* const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? digits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

// By rank: all bytes, then words in an order in which a longer one may come before its parts.
std::vector<std::string> ranked() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* word : {"ab", " a", "bc", "abcd", "cd", "\xC3\xA9", "abc", "ee", "eee", " ab"})
    tokens.emplace_back(word);
  return tokens;
}

std::string tekken_json(std::int32_t size, const std::string& specials) {
  std::string vocab;
  const std::vector<std::string> tokens = ranked();
  for (std::size_t i = 0; i < tokens.size(); ++i)
    vocab += (i == 0 ? "" : ",") + std::string("{\"rank\":") + std::to_string(i) +
             ",\"token_bytes\":\"" + base64(tokens[i]) + "\",\"token_str\":null}";
  return R"({"config":{"pattern":" ?[\\p{L}]+|\\s|[^\\s\\p{L}]+","default_vocab_size":)" +
         std::to_string(size) + R"(,"default_num_special_tokens":)" + std::to_string(kSpecials) +
         R"(,"version":"v11"},"vocab":[)" + vocab + R"(],"special_tokens":[)" + specials + "]}";
}

const char* const kListed =
    R"({"rank":0,"token_str":"<unk>","is_control":true},{"rank":1,"token_str":"<s>","is_control":true},
       {"rank":3,"token_str":"[INST]","is_control":true})";

std::vector<std::int32_t> slowly(const std::string& word, std::size_t count) {
  std::map<std::string, std::int32_t> ranks;
  const std::vector<std::string> tokens = ranked();
  for (std::size_t i = 0; i < count; ++i) ranks[tokens[i]] = std::int32_t(i);
  std::vector<std::string> parts;
  for (const char byte : word) parts.emplace_back(1, byte);
  while (true) {
    std::int32_t best = INT32_MAX;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto found = ranks.find(parts[i] + parts[i + 1]);
          found != ranks.end() && found->second < best)
        best = found->second, at = i;
    if (best == INT32_MAX) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + std::ptrdiff_t(at) + 1);
  }
  std::vector<std::int32_t> ids;
  for (const std::string& part : parts) ids.push_back(kSpecials + ranks.at(part));
  return ids;
}

Tokenizer read(const std::string& json) {
  return with_json(json, [](JsonView view) { return read_tekken(view, "tekken.json"); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(words_are_merged_by_the_ranks_of_what_they_become) {
  const std::size_t all = ranked().size();
  for (const std::size_t left_out : {std::size_t{0}, std::size_t{3}}) {
    const std::size_t count = all - left_out;
    const Tokenizer tokenizer = read(tekken_json(kSpecials + std::int32_t(count), kListed));
    std::mt19937 random(1);
    const char* const letters[] = {"a", "b", "c", "d", "e", "\xC3\xA9"};
    for (int trial = 0; trial < 200; ++trial) {
      std::string word = trial % 2 == 0 ? "" : " ";
      for (unsigned i = 0; i < 1 + random() % 9; ++i) word += letters[random() % 6];
      const std::vector<std::int32_t> ids = tokenizer.encode(word);
      // A word that is a token is one, however its parts would be merged.
      const std::vector<std::string> tokens = ranked();
      const auto whole = std::find(tokens.begin(), tokens.begin() + std::ptrdiff_t(count), word);
      const bool is_whole = whole != tokens.begin() + std::ptrdiff_t(count);
      const std::vector<std::int32_t> wanted =
          is_whole ? std::vector{kSpecials + std::int32_t(whole - tokens.begin())}
                   : slowly(word, count);
      BOOST_TEST(ids == wanted, word << ", " << left_out << " left out");
    }
  }
}

BOOST_AUTO_TEST_CASE(special_tokens_come_first_and_stand_for_themselves) {
  const Tokenizer tokenizer = read(tekken_json(1000, kListed));
  using Ids = std::vector<std::int32_t>;
  BOOST_TEST((tokenizer.encode("<s>[INST]ab[INST]") == Ids{1, 3, kSpecials + 256, 3}));
  BOOST_TEST((tokenizer.prefix().empty() && tokenizer.suffix().empty()));
  BOOST_TEST(tokenizer.find("<unk>").value() == 0);
}

BOOST_AUTO_TEST_CASE(damaged_files_are_refused_with_the_field) {
  const auto refusal = [](const std::string& json) -> std::string {
    try {
      read(json);
    } catch (const TextError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto says = [](const std::string& text, const char* word) {
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  says(refusal("{}"), "tekken.json");
  says(refusal(tekken_json(2, kListed)), "4 special tokens of 2");
  says(refusal(tekken_json(1000, R"({"rank":9,"token_str":"<x>"})")), "rank 9");
  std::string broken = tekken_json(1000, kListed);
  broken.replace(broken.find("AA=="), 4, "A!==");
  says(refusal(broken), "base64");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace heddle::text
