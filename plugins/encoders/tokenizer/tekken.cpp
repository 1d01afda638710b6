#include "tekken.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "json_at.h"
#include "utf8.h"

namespace heddle::text {
namespace {

std::string base64_bytes(const JsonAt& json) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char digit : json.string()) {
    if (digit == '=') break;
    const std::size_t value = kDigits.find(digit);
    if (value == kDigits.npos) json.fail("expects base64. Download the file again.");
    bits = (bits << 6 | std::uint32_t(value)) & 0xFFFFFF;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(static_cast<unsigned char>(bits >> held & 0xFF));
  }
  if (bytes.empty()) json.fail("expects at least one byte. Download the file again.");
  return bytes;
}

// Bytes as byte-level BPE writes them.
std::string written(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    append_utf8(text, byte_level_character(static_cast<unsigned char>(byte)));
  return text;
}

std::vector<AddedToken> read_specials(const JsonAt& json, std::int32_t count,
                                      Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  for (std::size_t i = 0; i < json.array().size(); ++i) {
    const JsonAt token = json.item(i);
    const std::int32_t id = token.get("rank").id();
    if (id >= count)
      token.fail("has rank " + std::to_string(id) + ", there are " + std::to_string(count) +
                 " special tokens. Download the file again.");
    tokens.push_back({.content = std::string(token.get("token_str").string()), .special = true});
    vocabulary.add(tokens.back().content, id);
  }
  return tokens;
}

// Every pair of tokens whose bytes together are a token may be merged, by that one's rank.
std::vector<BpeOptions::Ids> merges_of(const std::vector<std::string>& tokens, std::int32_t first) {
  Vocabulary ids;  // by the bytes themselves
  ids.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (!tokens[i].empty()) ids.add(tokens[i], first + std::int32_t(i));
  std::vector<BpeOptions::Ids> merges;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view bytes = tokens[i];
    const std::size_t begin = merges.size();
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      const auto left = ids.find(bytes.substr(0, cut)), right = ids.find(bytes.substr(cut));
      if (left && right) merges.push_back({*left, *right, first + std::int32_t(i)});
    }
    std::sort(merges.begin() + std::ptrdiff_t(begin), merges.end(),
              [](const auto& a, const auto& b) {
                return std::pair(a.left, a.right) < std::pair(b.left, b.right);
              });
  }
  return merges;
}

}  // namespace

Tokenizer read_tekken(JsonView root, const std::string& name) {
  const JsonAt json(root, name), config = json.get("config");
  const std::int32_t specials = config.get("default_num_special_tokens").id(),
                     size = config.get("default_vocab_size").id();
  if (specials > size)
    config.fail("has " + std::to_string(specials) + " special tokens of " + std::to_string(size) +
                " in all. Download the file again.");
  // By rank. The file may have more tokens than the model was made for.
  const JsonAt listed = json.get("vocab");
  const std::size_t most = std::min(listed.array().size(), std::size_t(size - specials));
  std::vector<std::string> tokens(most);
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const JsonAt token = listed.item(i);
    const auto rank = std::size_t(token.get("rank").id());
    if (rank < most) tokens[rank] = base64_bytes(token.get("token_bytes"));
  }
  BpeOptions options{.vocabulary = {},
                     .merges = {},
                     .merged_ids = merges_of(tokens, specials),
                     .continuing_prefix = {},
                     .end_of_word_suffix = {},
                     .unknown = std::nullopt,
                     .ignore_merges = true};
  options.vocabulary.reserve(tokens.size() + std::size_t(specials));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (!tokens[i].empty()) options.vocabulary.add(written(tokens[i]), specials + std::int32_t(i));
  std::vector<AddedToken> added;
  if (const auto part = json.find("special_tokens"))
    added = read_specials(*part, specials, options.vocabulary);
  std::vector<PreTokenizerStep> steps;
  steps.push_back(SplitStep{Regex::compile(config.get("pattern").string(), name)});
  steps.push_back(ByteLevelStep{});
  const Normalizer normalizer;
  Tokenizer::Model model = ByteLevelBpe(std::move(options), name);
  AddedTokens found(std::move(added), std::get<ByteLevelBpe>(model).vocabulary(), normalizer, name);
  return Tokenizer(
      {std::move(found), normalizer, PreTokenizer(std::move(steps)), std::move(model), {}, {}});
}

}  // namespace heddle::text
